/* SPDX-License-Identifier: MIT */
#ifndef TTD_PRELOAD_SYSTEM_MEMORY_H
#define TTD_PRELOAD_SYSTEM_MEMORY_H

/* Reads memory that may not be mapped, and maps memory; errno is never changed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define UNWIND_PAGE 4096u

/* The memory that one capture may read. */
struct unwind_mem {
    uintptr_t own_low; /* of the thread's own stack, which is read without asking */
    uintptr_t own_high;
    uintptr_t probed_low; /* of other pages that this capture found to be readable */
    uintptr_t probed_high;
    bool is_foreign; /* other memory than the thread's own stack was read */
};

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

/* Gives pages back, unless no system call may be made. */
void unwind_pages_free(void *pages, size_t size);

/* Does what unwind_read() does, for an address outside of the thread's own stack. */
bool unwind_read_elsewhere(struct unwind_mem *mem, uintptr_t address, uintptr_t *value);

/* Reads the word at `address` into `*value`. False, and `*value` untouched, if it cannot be read.
 */
static inline bool unwind_read(struct unwind_mem *mem, uintptr_t address, uintptr_t *value)
{
    if (__builtin_expect(address < mem->own_low || address > mem->own_high - sizeof *value, 0))
        return unwind_read_elsewhere(mem, address, value);
    *value = *(const uintptr_t *)address; /* x86 reads unaligned words */
    return true;
}

#pragma GCC visibility pop

#endif
