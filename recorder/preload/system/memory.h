/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_PRELOAD_SYSTEM_MEMORY_H
#define RECORDER_PRELOAD_SYSTEM_MEMORY_H

/* Reads memory that may not be mapped, and maps memory; errno is never changed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dwarf/step.h"

#pragma GCC visibility push(hidden)

#define UNWIND_PAGE 4096u

/* Whether the page of `address` is readable. Asks the kernel, without a fault; false if that is not
   allowed. */
bool unwind_page_readable(uintptr_t address);

/* Whether all of [address, address + size) can be read. */
bool unwind_range_readable(uintptr_t address, size_t size);

/*
 * No system call is made any more, since it might not be allowed. Memory then comes out of
 * `reserve` bytes that are mapped now; what is not known to be readable is not read.
 */
void unwind_confine(size_t reserve);

/* Set by unwind_confine(): no system call is made. */
extern bool unwind_is_confined;

/* Returns new zeroed pages, or NULL if there is no memory. */
void *unwind_pages(size_t size);

/* Does the same, for pages that will all be written to soon, without a page fault for each. */
void *unwind_pages_used(size_t size);
/* Returns pages that this process shares with its forked children; NULL in a confined one. */
void *unwind_pages_shared(size_t size);

/* Gives pages back, unless no system call may be made. */
void unwind_pages_free(void *pages, size_t size);

#pragma GCC visibility pop

#endif
