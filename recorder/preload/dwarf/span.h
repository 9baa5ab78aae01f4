/* SPDX-License-Identifier: MIT */
#ifndef TTD_PRELOAD_DWARF_SPAN_H
#define TTD_PRELOAD_DWARF_SPAN_H

/* Memory that call frame information is read from: the segment of a module that holds it. */

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#include "cursor.h"
#include "../system/memory.h"

/* [low, high) may be read. With `needs_probe`, some of its pages may not be mapped. */
struct cfi_span {
    uintptr_t low;
    uintptr_t high;
    bool needs_probe;
};

#pragma GCC visibility push(hidden)

/* Finds the program headers of the program. To be called once, before span_around(). */
void span_setup(void);

/*
 * Returns the readable segment around `address`. For a program that the kernel mapped in pieces,
 * `object` is only one segment, and seldom the one that holds `address`. Where no program headers
 * are found, the span is a range around `address` whose pages are probed.
 */
struct cfi_span span_around(const struct dl_find_object *object, uintptr_t address);

#pragma GCC visibility pop

/* Whether [address, address + size) can be read within the span. */
static inline bool span_holds(const struct cfi_span *span, uintptr_t address, size_t size)
{
    if (address < span->low || address > span->high || size > span->high - address)
        return false;
    return !span->needs_probe || unwind_range_readable(address, size);
}

static inline __attribute__((always_inline)) struct cursor
span_cursor(const struct cfi_span *span, uintptr_t address, size_t size)
{
    struct cursor cursor = {0};
    if (!span_holds(span, address, size)) {
        cursor.is_bad = true;
        return cursor;
    }
    cursor.at = (const uint8_t *)address;
    cursor.end = cursor.at + size;
    return cursor;
}

#endif
