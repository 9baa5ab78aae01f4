/* SPDX-License-Identifier: MIT */
#include "preload/system/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "allocator_names.h"
#include "preload/system/sys.h"

int symbols_segment_protection(const ElfW(Phdr) * segment)
{
    return (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
           (segment->p_flags & PF_X ? PROT_EXEC : 0);
}

/* Returns the protection of the segment at `address`; -1 if it is not known: a tool may have moved
 * the list of segments away from the first page of the file. */
static int symbols_protection(const struct dl_find_object *object, uintptr_t address)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)object->dlfo_map_start;
    enum { FIRST_PAGE = 4096 };
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phoff > FIRST_PAGE ||
        header->e_phnum * sizeof(ElfW(Phdr)) > FIRST_PAGE - header->e_phoff)
        return -1;
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)((const char *)header + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        uintptr_t begin = object->dlfo_link_map->l_addr + segment[i].p_vaddr;
        if (segment[i].p_type != PT_LOAD || address < begin ||
            address - begin >= segment[i].p_memsz)
            continue;
        return symbols_segment_protection(&segment[i]);
    }
    return -1;
}

bool symbols_of(const struct dl_find_object *object, struct symbols *symbols)
{
    const struct link_map *map = object->dlfo_link_map;
    *symbols = (struct symbols){.bias = map->l_addr};
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        uintptr_t address = symbols_address(map, entry);
        if (entry->d_tag == DT_SYMTAB)
            symbols->table = (ElfW(Sym) *)address;
        else if (entry->d_tag == DT_STRTAB)
            symbols->strings = (const char *)address;
        else if (entry->d_tag == DT_GNU_HASH)
            symbols->hash = (const uint32_t *)address;
    }
    if (!symbols->table || !symbols->strings || !symbols->hash)
        return false;
    symbols->protection = symbols_protection(object, (uintptr_t)symbols->table);
    return true;
}

static uint32_t symbols_gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name != '\0'; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

ElfW(Sym) * symbols_find(const struct symbols *symbols, const char *name, uintptr_t address)
{
    uint32_t buckets = symbols->hash[0], first = symbols->hash[1], words = symbols->hash[2];
    const uint32_t *bucket = symbols->hash + 4 + words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = bucket + buckets;
    uint32_t hash = symbols_gnu_hash(name);
    uint32_t index = buckets != 0 ? bucket[hash % buckets] : 0;
    if (index < first)
        return NULL;
    for (;; index++) {
        ElfW(Sym) *symbol = &symbols->table[index];
        uint32_t known = chain[index - first];
        if ((known | 1) == (hash | 1) &&
            (address == 0 || symbols->bias + symbol->st_value == address) &&
            ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
            strcmp(symbols->strings + symbol->st_name, name) == 0)
            return symbol;
        if (known & 1)
            return NULL;
    }
}

/* The file, mapped; and its symbols within it. */
struct program_file {
    const char *bytes;
    size_t size;
    const Elf64_Sym *symbols;
    size_t count;
    const char *names; /* the last one ends within it */
    size_t names_size;
};

static bool symbols_program_map(struct program_file *file)
{
    struct stat status;
    *file = (struct program_file){.bytes = NULL};
    long opened =
        sys_call6(SYS_openat, AT_FDCWD, (long)"/proc/self/exe", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (opened < 0)
        return false;
    long mapped = -1;
    if (sys_call3(SYS_fstat, opened, (long)&status, 0) == 0 &&
        status.st_size > (off_t)sizeof(Elf64_Ehdr)) {
        file->size = (size_t)status.st_size;
        mapped = sys_call6(SYS_mmap, 0, (long)file->size, PROT_READ, MAP_PRIVATE, opened, 0);
    }
    sys_call3(SYS_close, opened, 0, 0);
    if (mapped < 0 && mapped > -4096)
        return false;
    file->bytes = (const char *)mapped;
    return true;
}

static void symbols_program_unmap(const struct program_file *file)
{
    sys_call3(SYS_munmap, (long)file->bytes, (long)file->size, 0);
}

/* Returns a part of the file; NULL if it is not all there. */
static const void *symbols_program_part(const struct program_file *file, uint64_t offset,
                                        uint64_t size)
{
    return offset <= file->size && size <= file->size - offset && offset % 8 == 0
               ? file->bytes + offset
               : NULL;
}

/* Finds the table of all symbols, or the table of symbols that other modules see. */
static bool symbols_program_find_table(struct program_file *file, uint32_t type)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file->bytes;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_shentsize != sizeof(Elf64_Shdr))
        return false;
    const Elf64_Shdr *sections =
        symbols_program_part(file, header->e_shoff, header->e_shnum * sizeof *sections);
    for (unsigned i = 0; sections && i < header->e_shnum; i++) {
        if (sections[i].sh_type != type || sections[i].sh_link >= header->e_shnum)
            continue;
        const Elf64_Shdr *names = &sections[sections[i].sh_link];
        if (names->sh_size == 0 || names->sh_offset > file->size ||
            names->sh_size > file->size - names->sh_offset)
            return false;
        file->names = file->bytes + names->sh_offset;
        file->names_size = names->sh_size;
        file->symbols = symbols_program_part(file, sections[i].sh_offset, sections[i].sh_size);
        file->count = sections[i].sh_size / sizeof *file->symbols;
        return file->symbols && file->names[names->sh_size - 1] == '\0';
    }
    return false;
}

static bool program_symbols_open(struct program_file *file)
{
    if (!symbols_program_map(file))
        return false;
    if (symbols_program_find_table(file, SHT_SYMTAB) ||
        symbols_program_find_table(file, SHT_DYNSYM))
        return true;
    symbols_program_unmap(file);
    return false;
}

bool program_has_allocator(void)
{
    static const char ending[] = ALLOCATOR_NAMES_ENDING;
    struct program_file file;
    bool is_found = false;
    if (!program_symbols_open(&file))
        return false;
    const char *at = file.names, *end = file.names + file.names_size;
    while (!is_found && (at = memmem(at, (size_t)(end - at), ending, sizeof ending))) {
        size_t before = (size_t)(at - file.names);
        for (size_t i = 0; i < ALLOCATOR_NAMES; i++) {
            size_t prefix = strlen(allocator_names[i]) - (sizeof ending - 1);
            is_found |= prefix <= before && memcmp(at - prefix, allocator_names[i], prefix) == 0 &&
                        (prefix == before || at[-(ptrdiff_t)prefix - 1] == '\0');
        }
        at += sizeof ending - 1;
    }
    symbols_program_unmap(&file);
    return is_found;
}

/* The program's load address, and its header there. */
struct program_place {
    uintptr_t bias;
    const Elf64_Ehdr *header;
};

/* The first module is the program. Its file is another one where the loader itself was executed. */
static int symbols_program_find_place(struct dl_phdr_info *info, size_t size, void *found)
{
    struct program_place *place = found;
    (void)size;
    place->bias = info->dlpi_addr;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_offset == 0)
            place->header = (const Elf64_Ehdr *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return 1;
}

bool program_each_function(bool (*found)(const char *name, uintptr_t function, size_t size))
{
    struct program_file file;
    struct program_place place = {.header = NULL};
    if (!program_symbols_open(&file))
        return false;
    dl_iterate_phdr(symbols_program_find_place, &place);
    bool goes_on = place.header && memcmp(place.header, file.bytes, sizeof *place.header) == 0;
    for (size_t i = 0; i < file.count && goes_on; i++) {
        const Elf64_Sym *symbol = &file.symbols[i];
        if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
            symbol->st_name < file.names_size)
            goes_on =
                found(file.names + symbol->st_name, place.bias + symbol->st_value, symbol->st_size);
    }
    symbols_program_unmap(&file);
    return goes_on;
}
