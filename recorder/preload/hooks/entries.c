/* SPDX-License-Identifier: MIT */
/* Finds the functions that only one allocator has, and puts the hooks in their place. */
#include "preload/hooks/entries.h"

#include <dlfcn.h>
#include <string.h>

#include "preload/channel/target.h"
#include "preload/system/symbols.h"

extern struct redirection first_entry __asm__("__start_entries")
    __attribute__((visibility("hidden")));
extern struct redirection last_entry __asm__("__stop_entries")
    __attribute__((visibility("hidden")));

/* Whether the module is an allocator: looking for everything would touch many pages. */
static bool entries_is_allocator(const struct symbols *symbols)
{
    static const char *const names[] = {"mallocx", "tc_malloc", "mi_malloc"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (symbols_find(symbols, names[i], 0))
            return true;
    return false;
}

/* Finds the entries that a module defines and none before it has. Returns whether there are any. */
static bool entries_find_in(uintptr_t address)
{
    struct dl_find_object object;
    struct symbols symbols;
    bool is_found = false;
    if (_dl_find_object((void *)address, &object) != 0 || !symbols_of(&object, &symbols) ||
        !entries_is_allocator(&symbols))
        return false;
    for (struct redirection *entry = &first_entry; entry < &last_entry; entry++) {
        const ElfW(Sym) *symbol =
            entry->real_function == 0 ? symbols_find(&symbols, entry->name, 0) : NULL;
        if (!symbol || symbol->st_shndx == SHN_UNDEF)
            continue;
        entry->real_function = symbols.bias + symbol->st_value;
        is_found = true;
    }
    return is_found;
}

/* Looks into libraries that are called like allocators. */
static int entries_find_in_allocator(struct dl_phdr_info *info, size_t size, void *is_found)
{
    const char *name = strrchr(info->dlpi_name, '/');
    (void)size;
    if (!name || !strstr(name, "malloc"))
        return 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            *(bool *)is_found |= entries_find_in(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return 0;
}

void entries_redirect(void)
{
    bool is_found = entries_find_in((uintptr_t)real.malloc);
    dl_iterate_phdr(entries_find_in_allocator, &is_found);
    if (!is_found)
        return;
    size_t count = (size_t)(&last_entry - &first_entry);
    rebind(&first_entry, count); /* before they have symbols; those are changed then */
    redirect(&first_entry, count);
}

struct redirection *entries_named(const char *name)
{
    for (struct redirection *entry = &first_entry; entry < &last_entry; entry++)
        if (entry->real_function == 0 && strcmp(entry->name, name) == 0)
            return entry;
    return NULL;
}

static bool is_entry(const char *name)
{
    size_t size = strlen(name);
    return strncmp(name, "mi_", 3) == 0 || strncmp(name, "tc_", 3) == 0 ||
           (size >= 6 && strcmp(name + size - 6, "allocx") == 0);
}

/* Symbols that a module only refers to come first in its table, before those that are hashed. */
void entries_look_at(uintptr_t address)
{
    struct dl_find_object object;
    struct symbols symbols;
    if (_dl_find_object((void *)address, &object) != 0 || !symbols_of(&object, &symbols))
        return;
    for (uint32_t index = 1; index < symbols.hash[1]; index++) {
        const ElfW(Sym) *symbol = &symbols.table[index];
        const char *name = symbols.strings + symbol->st_name;
        if (symbol->st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol->st_info) == STB_WEAK ||
            !is_entry(name))
            continue;
        for (const struct redirection *entry = &first_entry; entry < &last_entry; entry++)
            if (entry->real_function == 0 && strcmp(entry->name, name) == 0)
                process_note(NOTE_ALLOCATOR);
    }
}
