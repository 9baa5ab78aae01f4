/* SPDX-License-Identifier: MIT */
/* The symbol table in the program's file, which has functions that no other module sees. */
#ifndef RECORDER_PRELOAD_HOOKS_PROGRAM_SYMBOLS_H
#define RECORDER_PRELOAD_HOOKS_PROGRAM_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the table has the malloc() of an allocator under a name of its own. */
bool program_has_allocator(void);

/* Calls `found` for each function that the program defines. Returns false once that does, or if
 * there is no table. */
bool program_each_function(bool (*found)(const char *name, uintptr_t function, size_t size));

#endif
