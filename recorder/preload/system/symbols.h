/* SPDX-License-Identifier: MIT */
/** The tables of a loaded module for the loader's search of symbols. */
#ifndef RECORDER_PRELOAD_SYSTEM_SYMBOLS_H
#define RECORDER_PRELOAD_SYSTEM_SYMBOLS_H

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols {
    uintptr_t bias;
    ElfW(Sym) * table;
    const char *strings;
    const uint32_t *hash; /* DT_GNU_HASH */
    int protection;       /* of the pages of the table; -1 if that is not known */
};

/** Returns the address of an entry of the dynamic section. The loader has made it absolute in most
 * modules, but not in all. */
static inline uintptr_t symbols_address(const struct link_map *map, const ElfW(Dyn) * entry)
{
    return entry->d_un.d_ptr < map->l_addr ? entry->d_un.d_ptr + map->l_addr : entry->d_un.d_ptr;
}

/** Returns the protection that the loader gives to a segment. */
int symbols_segment_protection(const ElfW(Phdr) * segment);

/** Finds the tables of a module. False if it lacks one of them. */
bool symbols_of(const struct dl_find_object *object, struct symbols *symbols);

/** Finds the symbol `name` that is defined at `address`, or anywhere if that is 0; NULL if there is
 * none. */
ElfW(Sym) * symbols_find(const struct symbols *symbols, const char *name, uintptr_t address);

/* The symbol table in the program's file: it has functions that no other module sees. */

/** Whether the table has the malloc() of an allocator under a name of its own. */
bool program_has_allocator(void);

/** Calls `found` for each function that the program defines. Returns false once that does, or if
 * there is no table. */
bool program_each_function(bool (*found)(const char *name, uintptr_t function, size_t size));

#endif
