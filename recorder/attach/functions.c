/* SPDX-License-Identifier: MIT */
/* Finds the functions of a process that are to be patched: all that the library has hooks for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocator_names.h"
#include "arrays.h"
#include "patch/instruction.h"
#include "attach/parts.h"

/* The library's hooks by the names of their functions. */
struct function_table {
    const struct attached_hook **rows;
    size_t count;
};

/* The functions of a module that have hooks. */
struct function_search {
    struct attachment *attachment;
    const struct function_table *table;
    struct attach_module *module;
    bool is_libc, is_loader, is_program, is_allocator;
    /* The prefixes of allocators' functions in the program. */
    char prefixes[ALLOCATOR_NAMES][16];
    size_t prefix_count;
    bool is_static; /* the program has the C library within */
    struct attach_function *found;
    size_t count, capacity;
    bool is_out_of_memory;
    bool has_families_as_one; /* set by the search */
};

static int functions_compare_rows(const void *left, const void *right)
{
    const struct attached_hook *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

static bool functions_table_open(struct function_table *table, const struct attach_image *image)
{
    table->count = image->hook_count;
    table->rows = calloc(table->count + 1, sizeof *table->rows);
    if (!table->rows)
        return false;
    for (size_t i = 0; i < table->count; i++)
        table->rows[i] = &image->hooks[i];
    qsort(table->rows, table->count, sizeof *table->rows, functions_compare_rows);
    return true;
}

static int functions_compare_name(const void *name, const void *row)
{
    const struct attached_hook *const *hook = row;
    return strcmp(name, (*hook)->name);
}

static const struct attached_hook *functions_table_find(const struct function_table *table,
                                                        const char *name)
{
    const struct attached_hook **row =
        bsearch(name, table->rows, table->count, sizeof *table->rows, functions_compare_name);
    return row ? *row : NULL;
}

/* ---- Names ---- */

/* Returns the hook of a function of the module; NULL if it has none there. */
static const struct attached_hook *hook_of_name(const struct function_search *search,
                                                const char *name)
{
    const struct attached_hook *hook = functions_table_find(search->table, name);
    if (!hook || hook->arguments == PATCH_GATE_ARGUMENTS + 1)
        return NULL;
    switch ((enum attached_place)hook->place) {
    case ATTACHED_EVERYWHERE:
        return !search->is_loader ? hook : NULL;
    case ATTACHED_IN_ALLOCATOR:
        return search->is_allocator ? hook : NULL;
    case ATTACHED_IN_LIBC:
        return search->is_libc ? hook : NULL;
    case ATTACHED_IN_LOADER:
        return search->is_libc || search->is_loader ? hook : NULL;
    }
    return NULL;
}

/* Returns the hook of a function that an allocator has under a name of its own. */
static const struct attached_hook *hook_of_prefixed(const struct function_search *search,
                                                    const char *name)
{
    for (size_t i = 0; i < search->prefix_count; i++) {
        size_t size = strlen(search->prefixes[i]);
        const struct attached_hook *hook = strncmp(name, search->prefixes[i], size) == 0
                                               ? functions_table_find(search->table, name + size)
                                               : NULL;
        if (hook && hook->place <= ATTACHED_IN_ALLOCATOR && hook->arguments <= PATCH_GATE_ARGUMENTS)
            return hook;
    }
    return NULL;
}

static bool symbol_is_function(const struct attach_symbols *symbols, const Elf64_Sym *symbol)
{
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
           ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_name < symbols->names_size;
}

/* Whether a name is the C library's own one for a function, beside the public one. */
static bool function_is_internal(const char *name, const char *public)
{
    return strncmp(name, "__libc_", 7) == 0 ||
           (strncmp(name, "__", 2) == 0 && strcmp(name + 2, public) == 0) ||
           (strcmp(name, "_Exit") == 0 && strcmp(public, "_exit") == 0);
}

/* Whether a function in a static program is the C library's: it has a second name there. Linkers
 * may have made both local. */
static bool function_is_of_libc(const struct attach_symbols *symbols, const Elf64_Sym *symbol)
{
    for (size_t i = 0; i < symbols->count; i++)
        if (symbols->items[i].st_value == symbol->st_value &&
            symbol_is_function(symbols, &symbols->items[i]) &&
            function_is_internal(symbols->names + symbols->items[i].st_name,
                                 symbols->names + symbol->st_name))
            return true;
    return false;
}

/* Notes the allocators of a table of symbols. */
static void functions_search_allocators(struct function_search *search,
                                        const struct attach_symbols *symbols)
{
    for (size_t i = 0; i < symbols->count; i++) {
        const char *name = symbols->names + symbols->items[i].st_name;
        if (!symbol_is_function(symbols, &symbols->items[i]))
            continue;
        search->is_allocator |= strcmp(name, "mallocx") == 0;
        for (size_t k = 0; k < ALLOCATOR_NAMES; k++) {
            size_t size = strlen(allocator_names[k]) - (sizeof ALLOCATOR_NAMES_ENDING - 1);
            if (strcmp(name, allocator_names[k]) != 0)
                continue;
            if (k >= ALLOCATOR_NAMES - ALLOCATOR_NAMES_HOOKED)
                search->is_allocator = true;
            else if (search->prefix_count < ALLOCATOR_NAMES && size < sizeof search->prefixes[0])
                memcpy(search->prefixes[search->prefix_count++], name, size);
        }
    }
}

/* Adds the functions in a table of symbols that have hooks. Of the program all count that it does
 * not keep to one file; of other modules those that others see, and allocators'. */
static void functions_search_symbols(struct function_search *search,
                                     const struct attach_symbols *symbols, bool are_exported)
{
    for (size_t i = 0; i < symbols->count; i++) {
        const Elf64_Sym *symbol = &symbols->items[i];
        const char *name = symbols->names + symbol->st_name;
        bool is_prefixed = false;
        if (!symbol_is_function(symbols, symbol))
            continue;
        bool is_seen =
            are_exported || (ELF64_ST_BIND(symbol->st_info) != STB_LOCAL && search->is_program);
        const struct attached_hook *hook =
            is_seen || search->is_static ? hook_of_name(search, name) : NULL;
        bool is_of_libc = hook && search->is_static && function_is_of_libc(symbols, symbol);
        if (!is_seen && !is_of_libc)
            hook = NULL;
        if (!hook) {
            hook = hook_of_prefixed(search, name);
            is_prefixed = hook != NULL;
        }
        if (!hook)
            continue;
        void *found =
            array_grow(search->found, search->count, &search->capacity, sizeof *search->found);
        if (!found) {
            search->is_out_of_memory = true;
            return;
        }
        search->found = found;
        search->found[search->count++] = (struct attach_function){
            .module = search->module,
            .hook = hook,
            .entry = search->module->bias + symbol->st_value,
            .size = symbol->st_size,
            .has_own_name = is_prefixed,
            .is_of_system =
                search->is_static
                    ? is_of_libc || (hook->place > ATTACHED_IN_ALLOCATOR && !is_prefixed)
                    : search->is_libc || search->is_loader,
        };
    }
}

/* ---- Functions with several names ---- */

/* Those with fewer arguments come first, since by another name the others may be missing; then
 * functions of C: the analyzer knows them best. */
static int compare_functions(const void *left, const void *right)
{
    const struct attach_function *a = left, *b = right;
    if (a->entry != b->entry)
        return a->entry < b->entry ? -1 : 1;
    if (a->hook->arguments != b->hook->arguments)
        return a->hook->arguments < b->hook->arguments ? -1 : 1;
    return (a->hook->place > b->hook->place) - (a->hook->place < b->hook->place);
}

/* An operator of C++ (perhaps under a name of tcmalloc's), and the function of C that has the same
 * arguments and does the same. */
static const struct function_operator {
    const char *begin, *end;
    char family; /* for objects, or for arrays */
    const char *plain;
} operators[] = {
#define OPERATORS_OF(new, tc_new, delete, tc_delete, family)                                       \
    {new, "mSt11align_val_t", family, "mi_malloc_aligned"}, {new, "m", family, "malloc"},          \
        {delete, "PvmSt11align_val_t", family, "mi_free_size_aligned"},                            \
        {delete, "PvSt11align_val_t", family, "mi_free_aligned"},                                  \
        {delete, "Pvm", family, "free_sized"}, {delete, "Pv", family, "free"},                     \
        {tc_new, "_aligned", family, "mi_malloc_aligned"}, {tc_new, "", family, "malloc"},         \
        {tc_delete, "_sized_aligned", family, "mi_free_size_aligned"},                             \
        {tc_delete, "_aligned", family, "mi_free_aligned"},                                        \
        {tc_delete, "_sized", family, "free_sized"},                                               \
    {                                                                                              \
        tc_delete, "", family, "free"                                                              \
    }
    OPERATORS_OF("_Zna", "tc_newarray", "_Zda", "tc_deletearray", 'a'),
    OPERATORS_OF("_Znw", "tc_new", "_Zdl", "tc_delete", 'o'),
};

static const struct function_operator *functions_operator_of(const struct attached_hook *hook)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        size_t size = strlen(operators[i].begin);
        if (strncmp(hook->name, operators[i].begin, size) == 0 &&
            strncmp(hook->name + size, operators[i].end, strlen(operators[i].end)) == 0)
            return &operators[i];
    }
    return NULL;
}

static char functions_family_of(const struct attached_hook *hook)
{
    const struct function_operator *known = functions_operator_of(hook);
    return known ? known->family : 'c';
}

/* Sorts the functions of a module. Returns whether functions of two families are one: functions of
 * C, and operators for objects and arrays. */
static bool functions_are_families_one(struct function_search *search)
{
    qsort(search->found, search->count, sizeof *search->found, compare_functions);
    for (size_t i = 1; i < search->count; i++)
        if (search->found[i].entry == search->found[i - 1].entry &&
            functions_family_of(search->found[i].hook) !=
                functions_family_of(search->found[i - 1].hook))
            return true;
    return false;
}

/* Where a function belongs to two families, calls do not show the meant one: all are recorded as
 * functions of C, of other modules too, as the operators that the allocator's lacks. */
static void functions_unite_families(struct attachment *attachment,
                                     const struct function_table *table)
{
    for (size_t i = 0; i < attachment->function_count; i++) {
        const struct function_operator *known =
            functions_operator_of(attachment->functions[i].hook);
        if (known)
            attachment->functions[i].hook = functions_table_find(table, known->plain);
    }
}

/* ---- Whether they can be patched ---- */

/* Whether the bytes of the function in the process equal its file's. */
static bool functions_is_unchanged(const struct attachment *attachment,
                                   const struct attach_function *function)
{
    unsigned char bytes[32], file[sizeof bytes];
    return attach_read(attachment, function->entry, bytes, sizeof bytes) &&
           attach_module_read(function->module, function->entry, file, sizeof file) &&
           memcmp(bytes, file, sizeof bytes) == 0;
}

/* Code of the process, read in parts. */
struct function_code {
    const struct attachment *attachment;
    uint64_t begin;
    size_t size;
    uint8_t bytes[4096];
};

static size_t function_read_code(void *context, uint64_t address, const uint8_t **code)
{
    struct function_code *part = context;
    if (address - part->begin >= part->size ||
        part->size - (address - part->begin) < INSTRUCTION_MAX) {
        ssize_t size =
            pread(part->attachment->memory, part->bytes, sizeof part->bytes, (off_t)address);
        part->begin = address;
        part->size = size > 0 ? (size_t)size : 0;
    }
    *code = part->bytes + (address - part->begin);
    return part->size - (address - part->begin);
}

static bool check_function(struct attachment *attachment, const struct attach_function *function)
{
    struct function_code code = {.attachment = attachment};
    if (!functions_is_unchanged(attachment, function))
        return attach_refuse(attachment,
                             "%s() of '%s' is not as in its file: another tool has changed it, or "
                             "the file was replaced",
                             function->hook->name, function->module->path);
    /* Callers of the C library's and the loader's are compiled apart from them, and their own call
     * other parts of them. */
    return function->is_of_system || clobbers_all(function->entry, function_read_code, &code) ||
           attach_refuse(attachment,
                         "%s() of '%s' calls no other module, so that its callers may have values "
                         "in registers which a hook would change",
                         function->hook->name, function->module->path);
}

/* Adds the found functions to the list of patches. */
static bool functions_search_take(struct function_search *search)
{
    struct attachment *attachment = search->attachment;
    void *functions =
        realloc(attachment->functions,
                (attachment->function_count + search->count + 1) * sizeof *attachment->functions);
    if (!functions)
        return attach_refuse(attachment, "no memory");
    attachment->functions = functions;
    for (size_t i = 0; i < search->count; i++) {
        if (i > 0 && search->found[i].entry == search->found[i - 1].entry)
            continue;
        if (!check_function(attachment, &search->found[i]))
            return false;
        attachment->functions[attachment->function_count++] = search->found[i];
    }
    return attachment->function_count <= ATTACHED_PATCHES ||
           attach_refuse(attachment, "it has too many allocators");
}

static bool functions_search_module(struct function_search *search)
{
    struct attach_module *module = search->module;
    functions_search_allocators(search, attach_module_symbols(module, true));
    functions_search_allocators(search, attach_module_symbols(module, false));
    functions_search_symbols(search, attach_module_symbols(module, false), true);
    if (search->is_program || search->prefix_count > 0)
        functions_search_symbols(search, attach_module_symbols(module, true), false);
    if (search->is_out_of_memory)
        return attach_refuse(search->attachment, "no memory");
    search->has_families_as_one = functions_are_families_one(search);
    return functions_search_take(search);
}

/* ---- Calls within allocators ---- */

enum { LIBC_ALLOCATOR_MAX = 1 << 20 };

static int functions_compare_sites(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Whether an address is a function of the module's that is not the program's own business. */
static bool is_own_function(const struct attachment *attachment, const struct attach_module *module,
                            uint64_t address)
{
    for (size_t i = 0; i < attachment->function_count; i++) {
        const struct attach_function *function = &attachment->functions[i];
        if (function->entry == address && function->module == module)
            return !function->has_own_name;
    }
    return false;
}

/* Finds direct calls of a module's own functions in a part of its code. Bytes that just look like
 * one are as rare as a number of 32 bits that is hit by chance. */
static bool functions_find_calls(struct attachment *attachment, const struct attach_module *module,
                                 uint64_t begin, const unsigned char *code, size_t size)
{
    enum { CALL = 0xe8, CALL_SIZE = 5 };
    for (size_t i = 0; i + CALL_SIZE <= size; i++) {
        int32_t offset;
        if (code[i] != CALL)
            continue;
        memcpy(&offset, code + i + 1, sizeof offset);
        uint64_t site = begin + i + CALL_SIZE;
        if (!is_own_function(attachment, module, site + (uint64_t)(int64_t)offset))
            continue;
        if (attachment->internal_count == ATTACHED_INTERNAL)
            return attach_refuse(attachment, "the allocator of '%s' calls itself too often",
                                 module->path);
        attachment->internal[attachment->internal_count++] = site;
    }
    return true;
}

/* Whether a function lies in the C library's allocator. All of that was compiled at once, so that
 * its functions follow one another. */
static bool function_is_of_libc_allocator(const struct attach_symbols *symbols,
                                          const Elf64_Sym *symbol)
{
    static const char *const names[] = {"__libc_malloc", "__libc_calloc", "__libc_realloc",
                                        "__libc_free", "__libc_memalign", "_int_malloc",
                                        "_int_free", "_int_realloc", "_int_memalign",
                                        /* Releases a thread's cached blocks, and the cache. */
                                        "__malloc_arena_thread_freeres"};
    if (!symbol_is_function(symbols, symbol))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(symbols->names + symbol->st_name, names[i]) == 0)
            return true;
    return false;
}

/* Finds these calls of the C library in a static program: only its allocator's are not the
 * program's own business. */
static bool function_find_internal_static(struct attachment *attachment)
{
    struct attach_module *program = attachment->program;
    const struct attach_symbols *symbols = attach_module_symbols(program, true);
    uint64_t begin = UINT64_MAX, end = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        const Elf64_Sym *symbol = &symbols->items[i];
        if (!function_is_of_libc_allocator(symbols, symbol))
            continue;
        begin = symbol->st_value < begin ? symbol->st_value : begin;
        end = symbol->st_value + symbol->st_size > end ? symbol->st_value + symbol->st_size : end;
    }
    if (end <= begin || end - begin > LIBC_ALLOCATOR_MAX)
        return true; /* the program has its own */
    begin += program->bias;
    end += program->bias;
    unsigned char *code = malloc(end - begin);
    bool is_done = code && attach_read(attachment, begin, code, end - begin) &&
                   functions_find_calls(attachment, program, begin, code, end - begin);
    free(code);
    return is_done || attach_refuse(attachment, "'%s' cannot be read", program->path);
}

/* Finds the calls that allocators make of their own functions. The program's own, if it has an
 * allocator linked in, are as direct: it is left out. */
static bool functions_find_internal(struct attachment *attachment)
{
    const struct attach_module *module = NULL;
    if (attachment->is_static && !function_find_internal_static(attachment))
        return false;
    for (size_t i = 0; i < attachment->function_count; i++) {
        if (attachment->functions[i].module == module ||
            !strstr(attachment->functions[i].module->path, ".so"))
            continue;
        module = attachment->functions[i].module;
        for (size_t k = 0; k < module->segment_count; k++) {
            const Elf64_Phdr *segment = &module->segments[k];
            if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0)
                continue;
            uint64_t begin = module->bias + segment->p_vaddr;
            unsigned char *code = malloc(segment->p_filesz + 1);
            bool is_done = code && attach_read(attachment, begin, code, segment->p_filesz) &&
                           functions_find_calls(attachment, module, begin, code, segment->p_filesz);
            free(code);
            if (!is_done)
                return attach_refuse(attachment, "'%s' cannot be read", module->path);
        }
    }
    qsort(attachment->internal, attachment->internal_count, sizeof *attachment->internal,
          functions_compare_sites);
    return true;
}

static bool functions_have_malloc(const struct attachment *attachment)
{
    for (size_t i = 0; i < attachment->function_count; i++)
        if (strcmp(attachment->functions[i].hook->name, "malloc") == 0)
            return true;
    return false;
}

bool attach_find_functions(struct attachment *attachment)
{
    struct function_table table;
    struct attach_modules *modules = &attachment->modules;
    const struct attach_module *libc = attach_modules_named(modules, "libc.so.6");
    const struct attach_module *loader = attach_modules_named(modules, "ld-linux-x86-64.so.2");
    const struct attach_module *program = attachment->program;
    bool is_done = functions_table_open(&table, &attachment->image), are_families_one = false;
    if (!is_done)
        return attach_refuse(attachment, "no memory");
    for (size_t i = 0; i < modules->count && is_done; i++) {
        struct attach_module *module = &modules->items[i];
        /* A static program may load libraries, but these have allocators and C libraries of their
         * own. */
        if (attachment->is_static && module != program)
            continue;
        struct function_search search = {.attachment = attachment,
                                         .table = &table,
                                         .module = module,
                                         .is_libc = module == libc || attachment->is_static,
                                         .is_static = attachment->is_static,
                                         .is_loader = module == loader,
                                         .is_program = module == program};
        is_done = functions_search_module(&search);
        are_families_one |= search.has_families_as_one;
        free(search.found);
    }
    if (is_done && are_families_one)
        functions_unite_families(attachment, &table);
    free(table.rows);
    if (is_done && attachment->is_static && !functions_have_malloc(attachment))
        return attach_refuse(attachment, "it is statically linked, and has no malloc() among its "
                                         "symbols");
    return is_done && functions_find_internal(attachment);
}
