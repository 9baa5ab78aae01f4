/* SPDX-License-Identifier: MIT */
/* Leads calls to the hooks that would pass them by: bindings, then symbol tables are changed. */
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "preload/system/real.h"
#include "preload/system/sys.h"
#include "preload/channel/target.h"
#include "preload/system/symbols.h"

/*
 * Binds modules to the hooks that are bound to the functions behind them already. An executable
 * that was linked with `-z now` is so before it starts.
 */

struct rebinding {
    const struct redirection *redirections;
    size_t count;
};

enum { PAGE = 4096 };

/* Returns the redirection for a place that refers to the symbol; NULL if it stays as it is. */
static const struct redirection *rebind_find(const struct rebinding *rebinding, const char *name,
                                             uintptr_t bound)
{
    for (size_t i = 0; i < rebinding->count; i++) {
        const struct redirection *redirection = &rebinding->redirections[i];
        if (redirection->real_function == bound && strcmp(redirection->name, name) == 0)
            return redirection;
    }
    return NULL;
}

/* Returns the protection of a place in a module that the loader has bound. It leaves the pages that
 * are only in part in PT_GNU_RELRO as they were. */
static int rebind_protection(const struct dl_phdr_info *info, uintptr_t address)
{
    int protection = PROT_READ | PROT_WRITE;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + segment->p_vaddr, end = begin + segment->p_memsz;
        if (segment->p_type == PT_GNU_RELRO && address >= begin &&
            address < (end & -(uintptr_t)PAGE))
            return PROT_READ;
        if (segment->p_type == PT_LOAD && address >= begin && address < end)
            protection = symbols_segment_protection(segment);
    }
    return protection;
}

/* The target is read-only behind the relocation of data, and in code that has relocations. */
static void rebind_target(const struct dl_phdr_info *info, uintptr_t *target, uintptr_t hook)
{
    uintptr_t begin = (uintptr_t)target & -(uintptr_t)PAGE;
    uintptr_t end = ((uintptr_t)(target + 1) + PAGE - 1) & -(uintptr_t)PAGE;
    int protection = rebind_protection(info, (uintptr_t)target);
    bool is_writable = (protection & PROT_WRITE) != 0;
    if (!is_writable &&
        sys_call3(SYS_mprotect, (long)begin, (long)(end - begin), protection | PROT_WRITE) != 0)
        return;
    __atomic_store_n(target, hook, __ATOMIC_RELEASE);
    if (!is_writable)
        sys_call3(SYS_mprotect, (long)begin, (long)(end - begin), protection);
}

/* Goes through one table of relocations of a module. */
static void rebind_table(const struct dl_phdr_info *info, const struct symbols *symbols,
                         const ElfW(Rela) * table, size_t size, const struct rebinding *rebinding)
{
    for (size_t i = 0; i < size / sizeof *table; i++) {
        uintptr_t *target = (uintptr_t *)(info->dlpi_addr + table[i].r_offset);
        unsigned type = (unsigned)ELF64_R_TYPE(table[i].r_info);
        bool is_address = type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ||
                          (type == R_X86_64_64 && table[i].r_addend == 0);
        if (!is_address)
            continue;
        const ElfW(Sym) *symbol = &symbols->table[ELF64_R_SYM(table[i].r_info)];
        const struct redirection *redirection =
            rebind_find(rebinding, symbols->strings + symbol->st_name, *target);
        if (redirection)
            rebind_target(info, target, redirection->hook);
    }
}

/* Whether the module defines one of the functions: its calls of its own functions stay. */
static bool redirect_defines_any(const struct link_map *map, const struct rebinding *rebinding)
{
    for (size_t i = 0; i < rebinding->count; i++) {
        struct dl_find_object object;
        uintptr_t function = rebinding->redirections[i].real_function;
        if (function != 0 && _dl_find_object((void *)function, &object) == 0 &&
            object.dlfo_link_map == map)
            return true;
    }
    return false;
}

static void rebind_module(const struct dl_phdr_info *info, const struct dl_find_object *object,
                          const struct rebinding *rebinding)
{
    const struct link_map *map = object->dlfo_link_map;
    struct symbols symbols;
    const ElfW(Rela) *calls = NULL, *data = NULL;
    size_t calls_size = 0, data_size = 0;
    if (!symbols_of(object, &symbols) || redirect_defines_any(map, rebinding))
        return;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_JMPREL)
            calls = (const ElfW(Rela) *)symbols_address(map, entry);
        else if (entry->d_tag == DT_PLTRELSZ)
            calls_size = entry->d_un.d_val;
        else if (entry->d_tag == DT_RELA)
            data = (const ElfW(Rela) *)symbols_address(map, entry);
        else if (entry->d_tag == DT_RELASZ)
            data_size = entry->d_un.d_val;
    }
    rebind_table(info, &symbols, calls, calls ? calls_size : 0, rebinding);
    rebind_table(info, &symbols, data, data ? data_size : 0, rebinding);
}

static int rebind_visit_module(struct dl_phdr_info *info, size_t size, void *rebinding)
{
    struct dl_find_object object;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC &&
            _dl_find_object((void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr), &object) == 0)
            rebind_module(info, &object, rebinding);
    return 0;
}

void rebind(const struct redirection *redirections, size_t count)
{
    dl_iterate_phdr(rebind_visit_module, &(struct rebinding){redirections, count});
}

/*
 * Changes the symbol tables of the libraries behind this one, so that they define the hooks instead
 * of their allocation functions. Some modules are bound to those although the hooks come first: a
 * plugin opened with RTLD_DEEPBIND looks in its own libraries, and dlsym() in the library that it
 * is given. Calls within such a library, and modules that are bound already, are not affected.
 */

/* The definitions of one module that are to be changed. */
struct change {
    struct symbols symbols;
    uintptr_t begin, end; /* of the pages that they are on */
};

/* Finds the definition of each function of this module. */
static void redirect_find_all(const struct link_map *map, struct change *change,
                              struct redirection *redirections, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct redirection *redirection = &redirections[i];
        struct dl_find_object object;
        if (redirection->real_function == 0 || redirection->symbol ||
            _dl_find_object((void *)redirection->real_function, &object) != 0 ||
            object.dlfo_link_map != map)
            continue;
        ElfW(Sym) *symbol =
            symbols_find(&change->symbols, redirection->name, redirection->real_function);
        if (!symbol)
            continue;
        uintptr_t begin = (uintptr_t)symbol & -(uintptr_t)PAGE;
        uintptr_t end = ((uintptr_t)(symbol + 1) + PAGE - 1) & -(uintptr_t)PAGE;
        change->begin = begin < change->begin ? begin : change->begin;
        change->end = end > change->end ? end : change->end;
        redirection->symbol = symbol;
    }
}

static bool redirect_protect(const struct change *change, int protection)
{
    return sys_call3(SYS_mprotect, (long)change->begin, (long)(change->end - change->begin),
                     protection) == 0;
}

static void redirect_module(const struct dl_find_object *object, struct redirection *redirections,
                            size_t count)
{
    struct change change = {.begin = UINTPTR_MAX};
    if (!symbols_of(object, &change.symbols) || change.symbols.protection < 0)
        return;
    redirect_find_all(object->dlfo_link_map, &change, redirections, count);
    if (change.begin >= change.end ||
        !redirect_protect(&change, change.symbols.protection | PROT_WRITE))
        return;
    for (size_t i = 0; i < count; i++) {
        ElfW(Sym) *symbol = redirections[i].symbol;
        /* Another thread may be looking it up. */
        if ((uintptr_t)symbol >= change.begin && (uintptr_t)symbol < change.end)
            __atomic_store_n(&symbol->st_value, redirections[i].hook - change.symbols.bias,
                             __ATOMIC_RELEASE);
    }
    redirect_protect(&change, change.symbols.protection);
}

void redirect(struct redirection *redirections, size_t count)
{
    const struct link_map *last_module = NULL;
    for (size_t i = 0; i < count; i++) {
        struct dl_find_object object;
        if (redirections[i].real_function == 0 || redirections[i].symbol ||
            _dl_find_object((void *)redirections[i].real_function, &object) != 0 ||
            object.dlfo_link_map == last_module)
            continue;
        redirect_module(&object, redirections, count);
        last_module = object.dlfo_link_map;
    }
}

void *real_find_beside(uintptr_t function, const char *name)
{
    struct dl_find_object object;
    struct symbols symbols;
    if (_dl_find_object((void *)function, &object) != 0 || !symbols_of(&object, &symbols))
        return NULL;
    const ElfW(Sym) *symbol = symbols_find(&symbols, name, 0);
    return symbol ? (void *)(symbols.bias + symbol->st_value) : NULL;
}
