/* SPDX-License-Identifier: MIT */
/**
 * The program's own versions of functions of the C library and the C++ runtime. It comes before
 * this library, so it calls its own and not the hooks.
 */
#ifndef RECORDER_PRELOAD_SYSTEM_REPLACED_H
#define RECORDER_PRELOAD_SYSTEM_REPLACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/system/sys.h"

/**
 * Whether the program defines one of the functions that allocate or release. The operators and
 * reallocarray() are then not recorded as such, since they may be made of the program's functions:
 * these may return another address than the block's, such as one behind a header. The calls that
 * reach the C library are recorded.
 */
extern HIDDEN bool replaced_any;

/** Sets it. */
void replaced_find(void);

/** Calls `found` for each of these functions, also under a second name, with its size, or 0 if that
 * is not known. Returns false once that does. */
bool replaced_each(bool (*found)(const char *name, uintptr_t function, size_t size));

/**
 * Leads their calls to the hooks, by changing their first instructions (hooks/patching.c); clears
 * replaced_any then. Returns false if not all of them can be changed: nothing was. Called once,
 * when the program starts.
 */
bool replaced_patch(void);

/** The same for functions that the program has under names of an allocator's own, such as
 * _rjem_malloc(). Returns false as well if there are none. */
bool patch_within(void);

/**
 * Whether the program's functions take each block from a call of the C library's, and release it by
 * one, as far as trying them with several sizes shows. Only in a copy of the process, or in one
 * that has nothing left to do: it calls them, and the hooks must not record meanwhile.
 */
bool replaced_forward(void);

#endif
