/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_SPAN_H
#define RECORDER_DWARF_SPAN_H

/* Memory that call frame information is read from: the segment of a module that holds it. */

#include <stdbool.h>
#include <stdint.h>

#include "dwarf/cursor.h"

/* [low, high) may be read. */
struct cfi_span {
    uintptr_t low;
    uintptr_t high;
    bool is_fetched; /* by span_fetch(); otherwise the memory is this process's, and all is there */
    void *process;   /* for span_fetch() */
};

#pragma GCC visibility push(hidden)

/*
 * Returns a cursor over [address, address + size), which lies within the span; one that is bad if
 * some of it cannot be read. Bytes that were copied stay until the next step. Each program that
 * follows frames has its own.
 */
struct cursor span_fetch(const struct cfi_span *span, uintptr_t address, size_t size);

#pragma GCC visibility pop

static inline __attribute__((always_inline)) struct cursor
span_cursor(const struct cfi_span *span, uintptr_t address, size_t size)
{
    struct cursor cursor = {0};
    if (address < span->low || address > span->high || size > span->high - address) {
        cursor.is_bad = true;
        return cursor;
    }
    if (span->is_fetched)
        return span_fetch(span, address, size);
    cursor.next = (const uint8_t *)address;
    cursor.end = cursor.next + size;
    return cursor;
}

#endif
