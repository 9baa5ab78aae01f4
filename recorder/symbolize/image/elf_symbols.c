/* SPDX-License-Identifier: MIT */
#include "symbolize/image/elf_symbols.h"

#include <stdlib.h>
#include <string.h>

#include "symbolize/child_arrays.h"

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

static bool symbol_is_code(const GElf_Sym *symbol)
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
static int compare_symbols(const void *left, const void *right)
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

static void symbols_load_table(struct symbols *symbols, struct image *image,
                               symbol_filter *is_wanted, const struct image_ranges *ranges)
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
        qsort(symbols->symbols, symbols->count, sizeof *symbols->symbols, compare_symbols);
    elf_drop_labels(symbols);
}

void symbols_load(struct symbols *symbols, struct image *image)
{
    symbols_load_table(symbols, image, symbol_is_code, &image->code);
}

void symbols_load_data(struct symbols *symbols, struct image *image)
{
    symbols_load_table(symbols, image, elf_is_variable, &image->data);
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
