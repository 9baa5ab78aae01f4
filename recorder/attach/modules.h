/* SPDX-License-Identifier: MIT */
/* The modules of another process, and the symbols that their files export. */
#ifndef RECORDER_ATTACH_MODULES_H
#define RECORDER_ATTACH_MODULES_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/layout/maps.h"

/* A table of symbols of a module's file. */
struct attach_symbols {
    Elf64_Sym *items;
    size_t count;
    char *names; /* ends with a NUL */
    size_t names_size;
};

struct attach_module {
    const char *path; /* in the maps */
    uint64_t begin, end, bias;
    int file; /* -1 if it cannot be opened, or is not the mapped file */
    Elf64_Phdr *segments;
    size_t segment_count;
    struct attach_symbols exported, all; /* `items` is NULL before the first look */
};

struct attach_modules {
    struct maps maps;
    struct attach_module *items;
    size_t count;
};

/* Lists the modules of a process; `memory` is its memory as a file. Returns false if its mappings
 * cannot be read, or memory ran out. */
bool attach_modules_read(struct attach_modules *modules, uint32_t pid, uint32_t tid, int memory);
void attach_modules_free(struct attach_modules *modules);

/* Returns the module whose file has a name that begins so; NULL if there is none. */
struct attach_module *attach_modules_named(struct attach_modules *modules, const char *name);

/* Finds a symbol that the module defines and exports, but for a function that the loader is to
 * choose. Returns its address, or 0. */
uint64_t attach_module_symbol(struct attach_module *module, const char *name);

/* Returns the symbols that other modules see, or all that the file names. */
const struct attach_symbols *attach_module_symbols(struct attach_module *module, bool are_all);

/* Reads bytes of the module as they are in its file, at an address that was not relocated. */
bool attach_module_read(const struct attach_module *module, uint64_t address, void *bytes,
                        size_t size);

#endif
