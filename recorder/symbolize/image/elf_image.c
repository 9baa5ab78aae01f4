/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* asprintf, strchrnul */
#include "symbolize/image/elf_image.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "arrays.h"
#include "symbolize/child_arrays.h"
#include "symbolize/image/image_file.h"
#include "symbolize/symbolize.h"

/* Debug files found by build-id alone: libdwfl looks for them only beside a module's own file. */

enum { BUILD_ID_MAX = 64 };

/* The second half of libdwfl's own default; the first is for files beside the module's. */
#define SYSTEM_DIRECTORY "/usr/lib/debug"

/* Search path of libdwfl: the default, and the folders of symbolize_set_debug_path(). */
static char *debug_file_path;
static const char *added_path = "";

void symbolize_set_debug_path(const char *path)
{
    added_path = path;
    free(debug_file_path);
    if (asprintf(&debug_file_path, ":.debug:" SYSTEM_DIRECTORY ":%s", path) < 0)
        debug_file_path = NULL;
}

static int image_open_below(const char *directory, size_t size, const char *id, char **path)
{
    if (size == 0 ||
        asprintf(path, "%.*s/.build-id/%.2s/%s.debug", (int)size, directory, id, id + 2) < 0)
        return -1;
    int fd = image_file_open(*path);
    if (fd < 0)
        free(*path);
    return fd;
}

static int image_open_local(const char *id, char **path)
{
    int fd = image_open_below(SYSTEM_DIRECTORY, strlen(SYSTEM_DIRECTORY), id, path);
    for (const char *directories = added_path; fd < 0 && *directories != '\0';) {
        size_t size = (size_t)(strchrnul(directories, ':') - directories);
        fd = image_open_below(directories, size, id, path);
        directories += size + (directories[size] == ':');
    }
    return fd;
}

/* The functions of libdebuginfod that are used; see debuginfod_find_debuginfo(3). */
struct debuginfod {
    void *(*begin)(void);
    int (*find)(void *client, const unsigned char *id, int size, char **path);
    void (*end)(void *client);
};

static bool image_debuginfod_load(struct debuginfod *library)
{
    /* debuginfod.c returns NULL if the user has named no server. */
    void *loaded = dlopen("libdebuginfod.so.1", RTLD_LAZY);
    if (!loaded)
        return false;
    *(void **)&library->begin = dlsym(loaded, "debuginfod_begin");
    *(void **)&library->find = dlsym(loaded, "debuginfod_find_debuginfo");
    *(void **)&library->end = dlsym(loaded, "debuginfod_end");
    return library->begin && library->find && library->end;
}

static int image_download(const struct symbolize_module *module, char **path)
{
    struct debuginfod library;
    void *client = image_debuginfod_load(&library) ? library.begin() : NULL;
    if (!client)
        return -1;
    int fd = library.find(client, module->build_id, (int)module->build_id_size, path);
    library.end(client);
    return fd < 0 ? -1 : fd;
}

/**
 * Looks in the directories, then asks the debuginfod servers. The caller verifies the build-id.
 *
 * @param path  set to the name of the file, to be freed
 * @return a descriptor, or -1.
 */
static int image_debug_file_open(const struct symbolize_module *module, char **path)
{
    char id[2 * BUILD_ID_MAX + 1];
    if (module->build_id_size < 2 || module->build_id_size > BUILD_ID_MAX)
        return -1;
    for (size_t i = 0; i < module->build_id_size; i++)
        snprintf(id + 2 * i, 3, "%02x", module->build_id[i]);
    int fd = image_open_local(id, path);
    return fd >= 0 ? fd : image_download(module, path);
}

static int find_no_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                       char **path, Elf **elf)
{
    (void)module, (void)data, (void)name, (void)base, (void)path, (void)elf;
    return -1;
}

/* libdwfl calls it with these eight. NOLINTNEXTLINE(readability-function-size) */
static int image_find_no_debug(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                               const char *path, const char *link, GElf_Word crc, char **found)
{
    (void)module, (void)data, (void)name, (void)base, (void)path, (void)link, (void)crc;
    (void)found;
    return -1;
}

struct build_id {
    const void *bytes;
    ssize_t size; /* 0 or less if there is none */
};

/*
 * Returns the build-id of the debug file that libdwfl looks for: the module's, or, when it names no
 * path, the one in the debug information that is open, of the file that it shares with others.
 */
static struct build_id image_wanted_debug_id(Dwfl_Module *module, const char *path)
{
    struct build_id id = {NULL, 0};
    const unsigned char *bytes = NULL;
    const char *name;
    GElf_Addr unused;
    if (path) {
        id.size = dwfl_module_build_id(module, &bytes, &unused);
        id.bytes = bytes;
        return id;
    }
    Dwarf *debug = dwfl_module_getdwarf(module, &unused);
    if (debug)
        id.size = dwelf_dwarf_gnu_debugaltlink(debug, &name, &id.bytes);
    return id;
}

static bool image_has_build_id(int fd, const struct build_id *wanted)
{
    const void *bytes = NULL;
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    bool is_wanted = elf && dwelf_elf_gnu_build_id(elf, &bytes) == wanted->size &&
                     memcmp(bytes, wanted->bytes, (size_t)wanted->size) == 0;
    elf_end(elf);
    return is_wanted;
}

/* libdwfl verifies the build-id of files that it finds in directories, not of those that a server
 * sends. NOLINTNEXTLINE(readability-function-size) */
static int image_find_debug(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                            const char *path, const char *link, GElf_Word crc, char **found)
{
    int fd = dwfl_standard_find_debuginfo(module, data, name, base, path, link, crc, found);
    const struct build_id wanted = image_wanted_debug_id(module, path);
    if (fd < 0 || wanted.size <= 0 || image_has_build_id(fd, &wanted))
        return fd;
    close(fd);
    free(*found);
    *found = NULL;
    return -1;
}

static const Dwfl_Callbacks callbacks = {
    .find_elf = find_no_elf,
    .find_debuginfo = image_find_debug,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = &debug_file_path,
};

static const Dwfl_Callbacks callbacks_without_debug = {
    .find_elf = find_no_elf,
    .find_debuginfo = image_find_no_debug,
    .section_address = dwfl_offline_section_address,
};

static bool image_is_same_build(Dwfl_Module *opened, const struct symbolize_module *module)
{
    const unsigned char *id;
    GElf_Addr address;
    int size = dwfl_module_build_id(opened, &id, &address);
    size_t actual = size > 0 ? (size_t)size : 0;
    return actual == module->build_id_size &&
           (actual == 0 || memcmp(id, module->build_id, actual) == 0);
}

static void image_add_range(struct image_ranges *ranges, uint64_t begin, uint64_t size,
                            size_t section)
{
    if (size == 0 || begin > UINT64_MAX - size)
        return;
    ranges->spans =
        grow_by_one(ranges->spans, &ranges->capacity, ranges->count, sizeof *ranges->spans);
    ranges->spans[ranges->count++] = (struct span){begin, begin + size, (uint32_t)section};
}

static uint64_t image_find_tls(Elf *elf)
{
    size_t segments = 0;
    (void)elf_getphdrnum(elf, &segments);
    for (size_t i = 0; i < segments; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_TLS)
            return header.p_vaddr;
    }
    return 0;
}

static void image_add_section(struct image *image, Elf_Scn *section, uint64_t tls)
{
    GElf_Shdr header;
    if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC))
        return;
    size_t number = elf_ndxscn(section);
    if (header.sh_flags & SHF_EXECINSTR)
        image_add_range(&image->code, header.sh_addr, header.sh_size, number);
    else if (header.sh_flags & SHF_TLS)
        image_add_range(&image->data, (header.sh_addr - tls) | SYMBOLIZE_TLS, header.sh_size,
                        number);
    else
        image_add_range(&image->data, header.sh_addr, header.sh_size, number);
}

static void image_add_segment(struct image *image, const GElf_Phdr *header)
{
    if (header->p_type == PT_TLS)
        image_add_range(&image->data, SYMBOLIZE_TLS, header->p_memsz, 0);
    if (header->p_type == PT_LOAD)
        image_add_range(header->p_flags & PF_X ? &image->code : &image->data, header->p_vaddr,
                        header->p_memsz, 0);
}

static void image_find_ranges(struct image *image, Elf *elf)
{
    uint64_t tls = image_find_tls(elf);
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));)
        image_add_section(image, section, tls);
    size_t segments = 0;
    if (image->code.count == 0)
        (void)elf_getphdrnum(elf, &segments);
    for (size_t i = 0; i < segments; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header))
            image_add_segment(image, &header);
    }
    spans_sort(image->code.spans, image->code.count);
    spans_sort(image->data.spans, image->data.count);
}

/* Reports the file at bias 0, so that addresses are the file's. */
static bool image_load(struct image *image, const char *path, int fd)
{
    image->module = dwfl_report_elf(image->dwfl, path, path, fd, 0, true);
    if (!image->module) {
        close(fd);
        return false;
    }
    GElf_Addr bias;
    GElf_Ehdr header;
    Elf *elf = dwfl_module_getelf(image->module, &bias);
    if (dwfl_report_end(image->dwfl, NULL, NULL) != 0 || !elf || bias != 0 ||
        !gelf_getehdr(elf, &header) || (header.e_type != ET_EXEC && header.e_type != ET_DYN))
        return false;
    image_find_ranges(image, elf);
    return true;
}

/* Opens a file whose build-id is the module's. Takes over `fd`. */
static enum image_result image_open_file(struct image *image, const char *path, int fd,
                                         const struct symbolize_module *module, bool with_debug)
{
    if (fd < 0)
        return IMAGE_ABSENT;
    image->dwfl = dwfl_begin(with_debug ? &callbacks : &callbacks_without_debug);
    if (!image->dwfl) {
        close(fd);
        return IMAGE_UNREADABLE;
    }
    enum image_result result = IMAGE_UNREADABLE;
    if (image_load(image, path, fd))
        result = image_is_same_build(image->module, module) ? IMAGE_OPEN : IMAGE_ABSENT;
    if (result != IMAGE_OPEN)
        image_close(image);
    return result;
}

enum image_result image_open(struct image *image, const struct symbolize_module *module,
                             bool with_debug)
{
    *image = (struct image){0};
    int fd = image_file_open(module->place ? module->place : module->path);
    if (fd >= 0 && module->build_id_size == 0 && !image_file_is(fd, &module->file)) {
        close(fd);
        return IMAGE_ABSENT;
    }
    enum image_result result = image_open_file(image, module->path, fd, module, with_debug);
    if (result == IMAGE_OPEN)
        return result;
    char *path = NULL;
    fd = image_debug_file_open(module, &path);
    if (fd >= 0) {
        result = image_open_file(image, path, fd, module, with_debug);
        free(path);
    }
    return result;
}

void image_close(struct image *image)
{
    dwfl_end(image->dwfl);
    inflate_free(&image->inflated);
    free(image->code.spans);
    free(image->data.spans);
    *image = (struct image){0};
}

static bool image_is_unneeded(const char *name)
{
    static const char *const names[] = {".debug_loclists", ".debug_loc",      ".debug_macro",
                                        ".debug_macinfo",  ".debug_pubnames", ".debug_pubtypes",
                                        ".debug_frame"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static void image_drop_unneeded(struct image *image)
{
    size_t strings;
    if (!image->symbols || elf_getshdrstrndx(image->symbols, &strings) != 0)
        return;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(image->symbols, section));) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(section, &header)
                               ? elf_strptr(image->symbols, strings, header.sh_name)
                               : NULL;
        if (!name || !image_is_unneeded(name))
            continue;
        header.sh_type = SHT_NOBITS; /* in memory only: the file is read */
        (void)gelf_update_shdr(section, &header);
    }
}

void image_prepare_debug(struct image *image)
{
    image_drop_unneeded(image);
    inflate_sections(&image->inflated, image->symbols);
}

const struct span *image_ranges_at(const struct image_ranges *ranges, uint64_t address)
{
    size_t begun_count = array_count_up_to(ranges->spans, ranges->count, sizeof *ranges->spans,
                                           offsetof(struct span, begin), address);
    const struct span *last = begun_count != 0 ? &ranges->spans[begun_count - 1] : NULL;
    return last && address < last->end ? last : NULL;
}

uint64_t image_ranges_end(const struct image_ranges *ranges, uint64_t address)
{
    const struct span *range = image_ranges_at(ranges, address);
    return range ? range->end : 0;
}

const char *image_section_name(const struct image *image, const struct span *range)
{
    GElf_Addr bias;
    GElf_Shdr header;
    size_t strings;
    Elf *elf = dwfl_module_getelf(image->module, &bias);
    Elf_Scn *section = range->index > 0 ? elf_getscn(elf, range->index) : NULL;
    if (!section || !gelf_getshdr(section, &header) || elf_getshdrstrndx(elf, &strings) != 0)
        return NULL;
    return elf_strptr(elf, strings, header.sh_name);
}

/* Whether a symbol is a mapping symbol such as $x or $d.12; it marks code or data on some
 * machines. */
static bool elf_is_mapping(const char *name)
{
    return name[0] == '$' && name[1] != '\0' && strchr("adtx", name[1]) &&
           (name[2] == '\0' || name[2] == '.');
}

static unsigned elf_rank_of(const GElf_Sym *symbol)
{
    switch (GELF_ST_BIND(symbol->st_info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
        return 2;
    case STB_WEAK:
        return 1;
    default:
        return 0;
    }
}

static bool elf_symbol_is_code(const GElf_Sym *symbol)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    return symbol->st_shndx != SHN_UNDEF &&
           (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

/* Variables without a size, such as __bss_start, are labels. */
static bool elf_is_variable(const GElf_Sym *symbol)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    return symbol->st_shndx != SHN_UNDEF && symbol->st_size > 0 &&
           (type == STT_OBJECT || type == STT_COMMON || type == STT_TLS);
}

static size_t elf_leading_underscores(const struct symbol *symbol)
{
    size_t count = 0;
    while (count < symbol->name_size && symbol->name[count] == '_')
        count++;
    return count;
}

/* Among names of the same rank, prefers the one in common use: malloc, not __libc_malloc. */
static int elf_compare_names(const struct symbol *a, const struct symbol *b)
{
    size_t a_score = elf_leading_underscores(a);
    size_t b_score = elf_leading_underscores(b);
    if (a_score != b_score)
        return a_score > b_score ? -1 : 1;
    if (a->name_size != b->name_size)
        return a->name_size > b->name_size ? -1 : 1;
    return memcmp(b->name, a->name, a->name_size);
}

/* Orders by begin. Among symbols with the same begin, those with a size come first, for
 * elf_drop_labels(), and the preferred one last. */
static int elf_compare_symbols(const void *left, const void *right)
{
    const struct symbol *a = left;
    const struct symbol *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if ((a->end > a->begin) != (b->end > b->begin))
        return a->end > a->begin ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return elf_compare_names(a, b);
}

/* A label in a function that has a size is no name for its contents, nor for the bytes behind
 * it. */
static void elf_drop_labels(struct symbols *symbols)
{
    size_t kept_count = 0;
    uint64_t end = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        const struct symbol *symbol = &symbols->symbols[i];
        if (symbol->end == symbol->begin && symbol->begin < end)
            continue;
        end = symbol->end > end ? symbol->end : end;
        symbols->symbols[kept_count++] = *symbol;
    }
    symbols->count = kept_count;
}

/* Size of a name without its version, and without a compiler's number for distinguishing variables
 * of functions, as in `kept.0`. */
static size_t elf_name_size_of(const char *name, bool is_of_variable)
{
    size_t size = strcspn(name, "@"), end = size;
    while (is_of_variable && end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    return end > 1 && end < size && name[end - 1] == '.' ? end - 1 : size;
}

/* Whether a variable may be one of a function: compilers name these `kept.0` or `run.kept`. */
static bool elf_is_of_function(const GElf_Sym *symbol, const char *name)
{
    return elf_is_variable(symbol) && GELF_ST_BIND(symbol->st_info) == STB_LOCAL &&
           strchr(name, '.');
}

typedef bool symbol_filter(const GElf_Sym *symbol);

static void elf_load_symbols(struct symbols *symbols, struct image *image, symbol_filter *is_wanted,
                             const struct image_ranges *ranges)
{
    *symbols = (struct symbols){0};
    size_t capacity = 0;
    const char *file = NULL;
    int count = dwfl_module_getsymtab(image->module);
    for (int i = 0; i < count; i++) {
        GElf_Sym entry;
        GElf_Addr address;
        GElf_Word section;
        Elf *elf;
        Dwarf_Addr bias;
        const char *name =
            dwfl_module_getsym_info(image->module, i, &entry, &address, &section, &elf, &bias);
        image->symbols = elf;
        if (name && GELF_ST_TYPE(entry.st_info) == STT_FILE)
            file = name;
        if (!name || !is_wanted(&entry) || elf_is_mapping(name))
            continue;
        if (GELF_ST_TYPE(entry.st_info) == STT_TLS)
            address = entry.st_value | SYMBOLIZE_TLS;
        size_t name_size = elf_name_size_of(name, is_wanted == elf_is_variable);
        uint64_t end = image_ranges_end(ranges, address);
        if (name_size == 0 || end == 0)
            continue;
        uint64_t size = entry.st_size < end - address ? entry.st_size : end - address;
        symbols->symbols =
            grow_by_one(symbols->symbols, &capacity, symbols->count, sizeof *symbols->symbols);
        symbols->symbols[symbols->count++] =
            (struct symbol){.name = name,
                            .name_size = name_size,
                            .begin = address,
                            .end = address + size,
                            .rank = elf_rank_of(&entry),
                            .file = elf_is_of_function(&entry, name) ? file : NULL};
    }
    if (symbols->count > 0)
        qsort(symbols->symbols, symbols->count, sizeof *symbols->symbols, elf_compare_symbols);
    elf_drop_labels(symbols);
}

void symbols_load(struct symbols *symbols, struct image *image)
{
    elf_load_symbols(symbols, image, elf_symbol_is_code, &image->code);
}

void symbols_load_data(struct symbols *symbols, struct image *image)
{
    elf_load_symbols(symbols, image, elf_is_variable, &image->data);
}

void symbols_free(struct symbols *symbols)
{
    free(symbols->symbols);
    *symbols = (struct symbols){0};
}

/* Those with a size, in the same order. */
static struct span *elf_sized_spans(const struct symbols *symbols, size_t *count)
{
    struct span *spans = grow_new(symbols->count, sizeof *spans);
    *count = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        const struct symbol *symbol = &symbols->symbols[i];
        if (symbol->end > symbol->begin)
            spans[(*count)++] = (struct span){symbol->begin, symbol->end, (uint32_t)i};
    }
    return spans;
}

static bool elf_reaches(const struct symbol *symbol, const struct image_ranges *ranges,
                        uint64_t address)
{
    return symbol->end == symbol->begin && address < image_ranges_end(ranges, symbol->begin);
}

void symbols_find(const struct symbols *symbols, const struct image_ranges *ranges,
                  const uint64_t *addresses, size_t count, const struct symbol **result)
{
    size_t span_count;
    struct span *spans = elf_sized_spans(symbols, &span_count);
    uint32_t *span = grow_new(count, sizeof *span);
    spans_find(spans, span_count, addresses, count, span);
    size_t after = 0; /* the first symbol that begins above the address */
    for (size_t i = 0; i < count; i++) {
        while (after < symbols->count && symbols->symbols[after].begin <= addresses[i])
            after++;
        result[i] = NULL;
        if (span[i] != SPAN_NONE)
            result[i] = &symbols->symbols[spans[span[i]].index];
        else if (after > 0 && elf_reaches(&symbols->symbols[after - 1], ranges, addresses[i]))
            result[i] = &symbols->symbols[after - 1];
    }
    free(span);
    free(spans);
}
