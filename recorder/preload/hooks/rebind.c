/* SPDX-License-Identifier: MIT */
/*
 * Binds modules to the hooks that are bound to the functions behind them already. An executable
 * that was linked with `-z now` is so before it starts.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "preload/channel/target.h"
#include "preload/system/real.h"
#include "preload/system/sys.h"
#include "preload/hooks/symbols.h"

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
static bool defines_any(const struct link_map *map, const struct rebinding *rebinding)
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
    if (!symbols_of(object, &symbols) || defines_any(map, rebinding))
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
