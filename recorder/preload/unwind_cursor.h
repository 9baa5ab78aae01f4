/* SPDX-License-Identifier: MIT */
#ifndef TTD_PRELOAD_UNWIND_CURSOR_H
#define TTD_PRELOAD_UNWIND_CURSOR_H

/*
 * Bounds-safe reading of call frame information. The first error empties the cursor and sticks:
 * callers check `bad` once. Reads after an error give 0.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Pointer encodings: the low half is the format, the high half what it is relative to. */
enum {
    PE_ABSPTR = 0x00,
    PE_ULEB = 0x01,
    PE_UDATA2 = 0x02,
    PE_UDATA4 = 0x03,
    PE_UDATA8 = 0x04,
    PE_SLEB = 0x09,
    PE_SDATA2 = 0x0a,
    PE_SDATA4 = 0x0b,
    PE_SDATA8 = 0x0c,
    PE_PCREL = 0x10,
    PE_DATAREL = 0x30,
    PE_OMIT = 0xff,
};

struct cursor {
    const uint8_t *p;
    const uint8_t *end;
    bool bad;
};

static inline size_t cursor_left(const struct cursor *c)
{
    return (size_t)(c->end - c->p);
}

static inline void cursor_fail(struct cursor *c)
{
    c->p = c->end;
    c->bad = true;
}

static inline void cursor_skip(struct cursor *c, uint64_t n)
{
    if (n > cursor_left(c)) {
        cursor_fail(c);
        return;
    }
    c->p += n;
}

/* Little-endian number of `size` bytes, 1 to 8. */
static inline uint64_t cursor_uint(struct cursor *c, size_t size)
{
    uint64_t v = 0;
    if (size > cursor_left(c)) {
        cursor_fail(c);
        return 0;
    }
    memcpy(&v, c->p, size);
    c->p += size;
    return v;
}

static inline int64_t cursor_int(struct cursor *c, size_t size)
{
    unsigned shift = 64 - 8 * (unsigned)size;
    return (int64_t)(cursor_uint(c, size) << shift) >> shift;
}

static inline uint8_t cursor_u8(struct cursor *c)
{
    if (c->p == c->end) {
        c->bad = true;
        return 0;
    }
    return *c->p++;
}

static inline uint64_t cursor_uleb(struct cursor *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t b = cursor_u8(c);
        v |= (uint64_t)(b & 0x7f) << shift;
        if ((b & 0x80) == 0)
            return v;
    }
    cursor_fail(c);
    return 0;
}

static inline int64_t cursor_sleb(struct cursor *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t b = cursor_u8(c);
        v |= (uint64_t)(b & 0x7f) << shift;
        if ((b & 0x80) == 0) {
            if ((b & 0x40) != 0 && shift + 7 < 64)
                v |= ~(uint64_t)0 << (shift + 7);
            return (int64_t)v;
        }
    }
    cursor_fail(c);
    return 0;
}

/* An encoded pointer; `data` is what DATAREL is relative to. Indirect ones are not read. */
static inline uintptr_t cursor_pointer(struct cursor *c, uint8_t encoding, uintptr_t data)
{
    uintptr_t base = 0;
    uintptr_t v;
    switch (encoding & 0xf0) {
    case PE_ABSPTR:
        break;
    case PE_PCREL:
        base = (uintptr_t)c->p;
        break;
    case PE_DATAREL:
        base = data;
        break;
    default:
        cursor_fail(c);
        return 0;
    }
    switch (encoding & 0x0f) {
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8:
        v = cursor_uint(c, 8);
        break;
    case PE_ULEB:
        v = cursor_uleb(c);
        break;
    case PE_SLEB:
        v = (uintptr_t)cursor_sleb(c);
        break;
    case PE_UDATA2:
        v = cursor_uint(c, 2);
        break;
    case PE_SDATA2:
        v = (uintptr_t)cursor_int(c, 2);
        break;
    case PE_UDATA4:
        v = cursor_uint(c, 4);
        break;
    case PE_SDATA4:
        v = (uintptr_t)cursor_int(c, 4);
        break;
    default:
        cursor_fail(c);
        return 0;
    }
    return base + v;
}

#endif
