/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_MODULES_H
#define RECORDER_DWARF_MODULES_H

/*
 * The modules of the process whose frames are followed. Each program that follows frames has its
 * own functions for that: the preload library is in that process, the collector is not.
 */

#include "dwarf/cfi.h"
#include "dwarf/debug_frame.h"

#pragma GCC visibility push(hidden)

/* Sets lookup->object to the module that has `address`. False if there is none. */
bool modules_find(struct cfi_lookup *lookup, uintptr_t address);

/*
 * Returns the readable segment around `address`. For a program that the kernel mapped in pieces,
 * lookup->object is only one segment, and seldom the one that holds `address`.
 */
struct cfi_span modules_segment(const struct cfi_lookup *lookup, uintptr_t address);

/*
 * Returns the section .debug_frame of lookup->object, NULL if it is not known, and sets `*bias` to
 * the difference of its addresses in the process to those in the file. Called for an address of
 * which its segments say nothing.
 */
const struct debug_frame *modules_debug_frame(struct cfi_lookup *lookup, uintptr_t *bias);

#pragma GCC visibility pop

#endif
