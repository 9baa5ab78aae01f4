/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_CURSOR_H
#define RECORDER_DWARF_CURSOR_H

/*
 * Bounds-safe reading of call frame information. The first error empties the cursor and sticks:
 * callers check `is_bad` once. Reads after an error give 0.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dwarf/dwarf.h"

struct cursor {
    const uint8_t *next;
    const uint8_t *end;
    bool is_bad;
    uintptr_t
        shift; /* from where the bytes are to where the process has them; 0 if it is this one */
};

/* Returns the address, in the process, of what is read next. */
static inline uintptr_t cursor_address(const struct cursor *cursor)
{
    return (uintptr_t)cursor->next + cursor->shift;
}

static inline size_t cursor_left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->next);
}

static inline void cursor_fail(struct cursor *cursor)
{
    cursor->next = cursor->end;
    cursor->is_bad = true;
}

static inline void cursor_skip(struct cursor *cursor, uint64_t size)
{
    if (size > cursor_left(cursor)) {
        cursor_fail(cursor);
        return;
    }
    cursor->next += size;
}

/* Reads a little-endian number of `size` bytes, 1 to 8. */
static inline uint64_t cursor_uint(struct cursor *cursor, size_t size)
{
    uint64_t value = 0;
    if (size > cursor_left(cursor)) {
        cursor_fail(cursor);
        return 0;
    }
    memcpy(&value, cursor->next, size);
    cursor->next += size;
    return value;
}

static inline int64_t cursor_int(struct cursor *cursor, size_t size)
{
    unsigned shift = 64 - 8 * (unsigned)size;
    return (int64_t)(cursor_uint(cursor, size) << shift) >> shift;
}

static inline uint8_t cursor_u8(struct cursor *cursor)
{
    if (cursor->next == cursor->end) {
        cursor->is_bad = true;
        return 0;
    }
    return *cursor->next++;
}

static inline uint64_t cursor_uleb(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return value;
    }
    cursor_fail(cursor);
    return 0;
}

static inline int64_t cursor_sleb(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            if ((byte & 0x40) != 0 && shift + 7 < 64)
                value |= ~(uint64_t)0 << (shift + 7);
            return (int64_t)value;
        }
    }
    cursor_fail(cursor);
    return 0;
}

/* Reads an encoded pointer; `data` is the base of DATAREL. Fails for indirect pointers. */
static inline uintptr_t cursor_pointer(struct cursor *cursor, uint8_t encoding, uintptr_t data)
{
    uintptr_t base = 0;
    uintptr_t value;
    switch (encoding & 0xf0) {
    case PE_ABSPTR:
        break;
    case PE_PCREL:
        base = cursor_address(cursor);
        break;
    case PE_DATAREL:
        base = data;
        break;
    default:
        cursor_fail(cursor);
        return 0;
    }
    switch (encoding & 0x0f) {
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8:
        value = cursor_uint(cursor, 8);
        break;
    case PE_ULEB:
        value = cursor_uleb(cursor);
        break;
    case PE_SLEB:
        value = (uintptr_t)cursor_sleb(cursor);
        break;
    case PE_UDATA2:
        value = cursor_uint(cursor, 2);
        break;
    case PE_SDATA2:
        value = (uintptr_t)cursor_int(cursor, 2);
        break;
    case PE_UDATA4:
        value = cursor_uint(cursor, 4);
        break;
    case PE_SDATA4:
        value = (uintptr_t)cursor_int(cursor, 4);
        break;
    default:
        cursor_fail(cursor);
        return 0;
    }
    return base + value;
}

#endif
