/* SPDX-License-Identifier: MIT */
#ifndef TTD_PRELOAD_UNWIND_MEM_H
#define TTD_PRELOAD_UNWIND_MEM_H

/* Reads memory that may not be mapped, and maps memory; errno is never changed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

#define UNWIND_PAGE 4096u

/* What one capture may read. */
struct unwind_mem {
    uintptr_t own_low; /* [own_low, own_high) is the thread's own stack: read without asking */
    uintptr_t own_high;
    uintptr_t
        probed_low; /* [probed_low, probed_high): other pages, found readable in this capture */
    uintptr_t probed_high;
    bool is_foreign; /* something else than the own stack was read */
};

/* Whether the page of `addr` is known to be readable; asks the kernel, without a fault. */
bool unwind_page_readable(uintptr_t address);

/* Whether all of [addr, addr + size) can be read. */
bool unwind_range_readable(uintptr_t address, size_t size);

/* Set by unwind_confine(): no system calls. */
extern bool unwind_is_confined;

/* Fresh zeroed pages; or NULL. */
void *unwind_pages(size_t size);

/* Gives pages back. */
void unwind_pages_free(void *pages, size_t size);

bool unwind_read_elsewhere(struct unwind_mem *mem, uintptr_t address, uintptr_t *value);

/* Reads the word at `addr` into `value`, or leaves it and returns false. */
static inline bool unwind_read(struct unwind_mem *mem, uintptr_t address, uintptr_t *value)
{
    if (__builtin_expect(address < mem->own_low || address > mem->own_high - sizeof *value, 0))
        return unwind_read_elsewhere(mem, address, value);
    *value = *(const uintptr_t *)address; /* NOLINT: x86 reads unaligned words */
    return true;
}

#pragma GCC visibility pop

#endif
