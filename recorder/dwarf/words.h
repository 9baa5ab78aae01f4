/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_WORDS_H
#define RECORDER_DWARF_WORDS_H

/* Reads words of the process whose frames are followed. */

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The memory that one walk may read. */
struct unwind_mem {
    uintptr_t own_low; /* of the thread's own stack, which is read without asking */
    uintptr_t own_high;
    uintptr_t probed_low; /* of other pages that this walk found to be readable */
    uintptr_t probed_high;
    bool is_foreign; /* other memory than the thread's own stack was read */
    void *process;   /* for unwind_read_elsewhere() */
};

/* All words are elsewhere: none is read without asking. */
#define UNWIND_MEM_PROBED                                                                          \
    (struct unwind_mem)                                                                            \
    {                                                                                              \
        .own_low = UINTPTR_MAX, .own_high = sizeof(uintptr_t)                                      \
    }

/* Does what unwind_read() does, for an address outside of the thread's own stack. Each program that
   follows frames has its own. */
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
