/* SPDX-License-Identifier: MIT */
#include "dwarf/frame_file.h"

#include <elf.h>
#include <string.h>

#include "dwarf/zlib_stream.h"

/* A larger section is not copied: the program may have little memory. */
#define SECTION_MAX ((uint64_t)64 << 20)

/* A larger debug file is not used if only its checksum shows that it is the module's. */
#define CHECKSUM_MAX ((uint64_t)256 << 20)

#define DEBUG_DIRECTORY "/usr/lib/debug"

enum { BUILD_ID_MAX = 64, LINK_MAX = 256, NOTES_MAX = 16, PATH_SIZE = 4096, BLOCK = 4096 };

/* The sections of a file that matter here. */
struct frame_file {
    uint64_t offset; /* of the section's bytes, or of their zlib stream */
    uint64_t stored;
    uint64_t size; /* 0 if there is no section that can be read */
    bool is_compressed;
    bool is_of_go;
    bool has_table;         /* .eh_frame_hdr */
    Elf64_Shdr exceptions;  /* .eh_frame; its size is 0 if there is none */
    uint32_t build_id_size; /* 0 if there is none */
    uint8_t build_id[BUILD_ID_MAX];
    char link[LINK_MAX]; /* the name of the debug file, or "" */
    uint32_t link_checksum;
};

/* The memory of a search: the stack of the program's thread may be too small for it. */
struct frame_search {
    const char *module_path;
    uint64_t low, high; /* of the code */
    struct frame_file module;
    struct frame_file other;
    struct cfi_lookup lookup;
    char path[PATH_SIZE];
    size_t path_size;
    uint8_t block[BLOCK];
};

static bool frame_file_is_named(int file, uint64_t offset, const char *name, size_t size)
{
    char bytes[16];
    return dwarf_file_read(file, offset, bytes, size) && memcmp(bytes, name, size) == 0;
}

static uint64_t frame_file_big_endian(const uint8_t bytes[8])
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Notes where the section is, unless its size cannot be true. */
static void frame_file_place(int file, struct frame_file *found, uint64_t offset, uint64_t stored,
                             uint64_t size, bool is_compressed)
{
    uint8_t last;
    if (size == 0 || size > SECTION_MAX || stored == 0 || stored > SECTION_MAX ||
        (is_compressed && size / ZLIB_RATIO_MAX > stored) ||
        !dwarf_file_read(file, offset + stored - 1, &last, 1))
        return;
    found->offset = offset;
    found->stored = stored;
    found->size = size;
    found->is_compressed = is_compressed;
}

/* A section whose flag says that it is compressed. */
static void frame_file_compressed(int file, struct frame_file *found, const Elf64_Shdr *section)
{
    Elf64_Chdr header;
    if (section->sh_size > sizeof header &&
        dwarf_file_read(file, section->sh_offset, &header, sizeof header) &&
        header.ch_type == ELFCOMPRESS_ZLIB)
        frame_file_place(file, found, section->sh_offset + sizeof header,
                         section->sh_size - sizeof header, header.ch_size, true);
}

/* A section whose name says that it is compressed. */
static void frame_file_zdebug(int file, struct frame_file *found, const Elf64_Shdr *section)
{
    uint8_t header[12];
    if (section->sh_size > sizeof header &&
        dwarf_file_read(file, section->sh_offset, header, sizeof header) &&
        memcmp(header, "ZLIB", 4) == 0)
        frame_file_place(file, found, section->sh_offset + sizeof header,
                         section->sh_size - sizeof header, frame_file_big_endian(header + 4), true);
}

/* The name of the debug file, and the checksum at the end of the section. */
static void frame_file_link(int file, struct frame_file *found, const Elf64_Shdr *section)
{
    uint64_t size = section->sh_size;
    if (size <= sizeof found->link_checksum || size > LINK_MAX ||
        !dwarf_file_read(file, section->sh_offset, found->link, size))
        return;
    size -= sizeof found->link_checksum;
    memcpy(&found->link_checksum, found->link + size, sizeof found->link_checksum);
    found->link[size] = '\0';
    if (strchr(found->link, '/'))
        found->link[0] = '\0';
}

static void frame_file_notes(int file, struct frame_file *found, const Elf64_Shdr *section)
{
    uint64_t offset = section->sh_offset, left = section->sh_size;
    Elf64_Nhdr note;
    for (unsigned i = 0; i < NOTES_MAX && left > sizeof note; i++) {
        if (!dwarf_file_read(file, offset, &note, sizeof note))
            return;
        uint64_t name_size = ((uint64_t)note.n_namesz + 3) & ~(uint64_t)3;
        uint64_t size = sizeof note + name_size + (((uint64_t)note.n_descsz + 3) & ~(uint64_t)3);
        if (size > left)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_descsz > 0 && note.n_descsz <= BUILD_ID_MAX &&
            name_size == 4 && frame_file_is_named(file, offset + sizeof note, "GNU", 4) &&
            dwarf_file_read(file, offset + sizeof note + name_size, found->build_id,
                            note.n_descsz)) {
            found->build_id_size = note.n_descsz;
            return;
        }
        offset += size;
        left -= size;
    }
}

/* Looks at a section whose name is at `name` in the file. */
static void frame_file_section(int file, struct frame_file *found, const Elf64_Shdr *section,
                               uint64_t name)
{
#define IS_NAMED(text) frame_file_is_named(file, name, text, sizeof(text))
    if (section->sh_type == SHT_NOTE && found->build_id_size == 0)
        frame_file_notes(file, found, section);
    if (section->sh_type == SHT_PROGBITS)
        found->is_of_go |= IS_NAMED(".go.buildinfo");
    if ((section->sh_flags & SHF_ALLOC) != 0) {
        found->has_table |= IS_NAMED(".eh_frame_hdr");
        if (section->sh_size <= SECTION_MAX && section->sh_addr != 0 &&
            section->sh_type != SHT_NOBITS && IS_NAMED(".eh_frame"))
            found->exceptions = *section;
    }
    if (section->sh_type != SHT_PROGBITS || (section->sh_flags & SHF_ALLOC) != 0)
        return;
    if (IS_NAMED(".debug_frame")) {
        if ((section->sh_flags & SHF_COMPRESSED) != 0)
            frame_file_compressed(file, found, section);
        else
            frame_file_place(file, found, section->sh_offset, section->sh_size, section->sh_size,
                             false);
    } else if (IS_NAMED(".zdebug_frame")) {
        frame_file_zdebug(file, found, section);
    } else if (IS_NAMED(".gnu_debuglink")) {
        frame_file_link(file, found, section);
    }
#undef IS_NAMED
}

/* Looks at the sections of a file. */
static void frame_file_look(int file, struct frame_file *found)
{
    Elf64_Ehdr header;
    Elf64_Shdr names, section;
    memset(found, 0, sizeof *found);
    if (!dwarf_file_read(file, 0, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_shentsize != sizeof section || header.e_shstrndx >= header.e_shnum ||
        !dwarf_file_read(file, header.e_shoff + header.e_shstrndx * sizeof names, &names,
                         sizeof names))
        return;
    for (size_t i = 1; i < header.e_shnum; i++) {
        if (!dwarf_file_read(file, header.e_shoff + i * sizeof section, &section, sizeof section))
            return;
        frame_file_section(file, found, &section, names.sh_offset + section.sh_name);
    }
}

/* Copies the section's bytes. */
static bool frame_file_copy(int file, const struct frame_file *found, uint8_t *bytes)
{
    if (!found->is_compressed)
        return dwarf_file_read(file, found->offset, bytes, found->size);
    struct zlib_stream *stream = dwarf_pages(sizeof *stream + found->stored);
    if (!stream)
        return false;
    uint8_t *stored = (uint8_t *)(stream + 1);
    bool is_copied = dwarf_file_read(file, found->offset, stored, found->stored) &&
                     zlib_expand(stream, stored, found->stored, bytes, found->size);
    dwarf_pages_free(stream, sizeof *stream + found->stored);
    return is_copied;
}

void debug_frame_unload(struct debug_frame *frame)
{
    if (frame->fdes)
        dwarf_pages_free(frame->fdes, frame->fde_count * sizeof *frame->fdes);
    if (frame->bytes)
        dwarf_pages_free((void *)(uintptr_t)frame->bytes, frame->size);
    *frame = (struct debug_frame){.size = 0};
}

/* Reads the section of a file that was looked at. */
static bool frame_file_take(int file, const struct frame_file *found,
                            const struct frame_search *search, struct debug_frame *frame)
{
    uint8_t *bytes = found->size > 0 ? dwarf_pages(found->size) : NULL;
    struct debug_frame copy = {.bytes = bytes, .size = found->size};
    if (!bytes)
        return false;
    size_t count = frame_file_copy(file, found, bytes)
                       ? debug_frame_list(&copy, search->low, search->high)
                       : 0;
    copy.fdes = count > 0 ? dwarf_pages(count * sizeof *copy.fdes) : NULL;
    if (!copy.fdes) {
        debug_frame_unload(&copy);
        return false;
    }
    copy.fde_count = debug_frame_list(&copy, search->low, search->high);
    *frame = copy;
    return true;
}

/* Lists the records of .eh_frame. Only the list stays. */
static bool frame_file_list(int file, struct frame_search *search, struct debug_frame *frame)
{
    const Elf64_Shdr *section = &search->module.exceptions;
    uint8_t *bytes =
        section->sh_size > 0 && !search->module.has_table ? dwarf_pages(section->sh_size) : NULL;
    struct debug_frame list = {
        .loaded = section->sh_addr, .bytes = bytes, .size = section->sh_size};
    if (!bytes)
        return false;
    size_t count = dwarf_file_read(file, section->sh_offset, bytes, section->sh_size)
                       ? eh_frame_list(&list, &search->lookup, search->low, search->high)
                       : 0;
    list.fdes = count > 0 ? dwarf_pages(count * sizeof *list.fdes) : NULL;
    if (list.fdes)
        list.fde_count = eh_frame_list(&list, &search->lookup, search->low, search->high);
    dwarf_pages_free(bytes, section->sh_size);
    list.bytes = NULL;
    if (list.fdes)
        *frame = list;
    return list.fdes != NULL;
}

/* The checksum of .gnu_debuglink: a CRC-32, here by half bytes. False if the file cannot be read.
 */
static bool frame_file_checksum(int file, uint8_t block[BLOCK], uint32_t *checksum)
{
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                       0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                       0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t crc = 0xffffffff;
    size_t part = BLOCK;
    for (uint64_t offset = 0; part > 0; offset += part) {
        if (offset > CHECKSUM_MAX)
            return false;
        while (part > 0 && !dwarf_file_read(file, offset, block, part))
            part /= 2; /* the file ends within the block */
        for (size_t i = 0; i < part; i++) {
            crc ^= block[i];
            crc = crc >> 4 ^ table[crc & 15];
            crc = crc >> 4 ^ table[crc & 15];
        }
    }
    *checksum = ~crc;
    return true;
}

/* Whether search->other is the debug file of the module. */
static bool frame_file_belongs(int file, struct frame_search *search)
{
    const struct frame_file *module = &search->module, *other = &search->other;
    uint32_t checksum;
    if (module->build_id_size > 0)
        return other->build_id_size == module->build_id_size &&
               memcmp(other->build_id, module->build_id, module->build_id_size) == 0;
    return frame_file_checksum(file, search->block, &checksum) && checksum == module->link_checksum;
}

static void frame_path_add(struct frame_search *search, const char *text, size_t size)
{
    if (size >= PATH_SIZE - search->path_size) /* a shorter path leads to another file at most */
        size = 0;
    memcpy(search->path + search->path_size, text, size);
    search->path_size += size;
    search->path[search->path_size] = '\0';
}

/* Reads the section of the file at search->path, if that is the module's debug file. */
static bool frame_search_try(struct frame_search *search, struct debug_frame *frame)
{
    int file = dwarf_file_open(search->path);
    if (file < 0)
        return false;
    frame_file_look(file, &search->other);
    bool is_taken = search->other.size > 0 && frame_file_belongs(file, search) &&
                    frame_file_take(file, &search->other, search, frame);
    dwarf_file_close(file);
    return is_taken;
}

/* Tries the file that the build-id names. */
static bool frame_search_build_id(struct frame_search *search, struct debug_frame *frame)
{
    static const char begin[] = DEBUG_DIRECTORY "/.build-id/", digits[] = "0123456789abcdef";
    const struct frame_file *module = &search->module;
    if (module->build_id_size < 2)
        return false;
    search->path_size = 0;
    frame_path_add(search, begin, sizeof begin - 1);
    for (size_t i = 0; i < module->build_id_size; i++) {
        uint8_t byte = module->build_id[i];
        const char name[] = {digits[byte >> 4], digits[byte & 15], '/'};
        frame_path_add(search, name, i == 0 ? 3 : 2);
    }
    frame_path_add(search, ".debug", 6);
    return frame_search_try(search, frame);
}

/* Tries the files that the link may name: beside the module's, below it, and in the directory for
 * debug files. */
static bool frame_search_link(struct frame_search *search, struct debug_frame *frame)
{
    static const struct {
        const char *before, *behind;
    } places[] = {{"", ""}, {"", ".debug/"}, {DEBUG_DIRECTORY, ""}};
    const char *slash = strrchr(search->module_path, '/');
    bool is_taken = false;
    if (!slash || search->module.link[0] == '\0')
        return false;
    for (size_t i = 0; i < sizeof places / sizeof *places && !is_taken; i++) {
        search->path_size = 0;
        frame_path_add(search, places[i].before, strlen(places[i].before));
        frame_path_add(search, search->module_path, (size_t)(slash + 1 - search->module_path));
        frame_path_add(search, places[i].behind, strlen(places[i].behind));
        frame_path_add(search, search->module.link, strlen(search->module.link));
        is_taken = frame_search_try(search, frame);
    }
    return is_taken;
}

bool debug_frame_load(int file, const char *path, uint64_t low, uint64_t high,
                      struct debug_frame *frame)
{
    struct frame_search *search = dwarf_pages(sizeof *search);
    if (!search)
        return false;
    search->module_path = path;
    search->low = low;
    search->high = high;
    frame_file_look(file, &search->module);
    /* C functions are called by runtime.asmcgocall() of Go, which has changed stacks: its rules
     * lead to a frame that there never was. */
    bool is_loaded = !search->module.is_of_go &&
                     (frame_file_list(file, search, frame) ||
                      frame_file_take(file, &search->module, search, frame) ||
                      frame_search_build_id(search, frame) || frame_search_link(search, frame));
    dwarf_pages_free(search, sizeof *search);
    return is_loaded;
}
