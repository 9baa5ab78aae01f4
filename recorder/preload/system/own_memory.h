/* SPDX-License-Identifier: MIT */
/** The list of the recorder's own mappings: see struct own_memory of the channel. */
#ifndef RECORDER_PRELOAD_SYSTEM_OWN_MEMORY_H
#define RECORDER_PRELOAD_SYSTEM_OWN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel.h"
#include "dwarf/step.h"

#pragma GCC visibility push(hidden)

/** The first part of the list. */
extern struct own_memory own_memory;

/** Adds memory that was just mapped. It is left out if there is no memory for the list. */
void own_memory_add(uintptr_t begin, size_t size);

/** Removes memory that is about to be unmapped, and may soon be the program's. */
void own_memory_remove(uintptr_t begin);

#pragma GCC visibility pop

/* Reads memory that may not be mapped, and maps memory; errno is never changed. */

#pragma GCC visibility push(hidden)

#define UNWIND_PAGE 4096u

/** Whether the page of `address` is readable. Asks the kernel, without a fault; false if that is
   not allowed. */
bool unwind_page_readable(uintptr_t address);

/** Whether all of [address, address + size) can be read. */
bool unwind_range_readable(uintptr_t address, size_t size);

/**
 * No system call is made any more, since it might not be allowed. Memory then comes out of
 * `reserve` bytes that are mapped now; memory that may be unreadable is not read.
 */
void unwind_confine(size_t reserve);

/** Set by unwind_confine(): no system call is made. */
extern bool unwind_is_confined;

/** Returns new zeroed pages, or NULL if there is no memory. */
void *unwind_pages(size_t size);

/** Does the same, for pages that will all be written to soon, without a page fault for each. */
void *unwind_pages_used(size_t size);
/** Returns pages that this process shares with its forked children; NULL in a confined one. */
void *unwind_pages_shared(size_t size);

/** Gives pages back, unless no system call may be made. */
void unwind_pages_free(void *pages, size_t size);

#pragma GCC visibility pop

#endif
