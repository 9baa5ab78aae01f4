/* SPDX-License-Identifier: MIT */
/**
 * Decoding of varints for the hottest loops. The cursor must be a local variable of the loop: its
 * address is not passed to any function that is not inlined, so the compiler keeps it in registers.
 */
#ifndef TTD_BASE_VARINT_FAST_H
#define TTD_BASE_VARINT_FAST_H

#include "base/cursor.h"

/** A varint and the cursor behind it. */
struct ttd_varint {
    uint64_t value;
    struct ttd_cursor cursor;
};

/** The general case of ttd_varint_fast(). */
struct ttd_varint ttd_varint_slow(struct ttd_cursor cursor);

/** Joins the 7-bit groups of up to 8 bytes into one number. */
static inline uint64_t ttd_varint_squeeze(uint64_t x)
{
    x = (x & UINT64_C(0x7F007F007F007F00)) >> 1 | (x & UINT64_C(0x007F007F007F007F));
    x = (x & UINT64_C(0x3FFF00003FFF0000)) >> 2 | (x & UINT64_C(0x00003FFF00003FFF));
    return (x & UINT64_C(0x0FFFFFFF00000000)) >> 4 | (x & UINT64_C(0x000000000FFFFFFF));
}

/** Reads a varint as ttd_cursor_varint() does, but without a branch for each byte, since the number
 * of bytes is hard to predict. */
static inline uint64_t ttd_varint_fast(struct ttd_cursor *cursor)
{
    size_t remaining = ttd_cursor_left(cursor);
    const uint8_t *next = cursor->next;
    if (remaining >= 1 && next[0] < 0x80) {
        cursor->next = next + 1;
        return next[0];
    }
    if (remaining >= 8) {
        uint64_t x = ttd_get64(next);
        uint64_t stops = ~x & UINT64_C(0x8080808080808080);
        uint64_t mask = stops ^ (stops - 1); /* all bits of the varint's bytes */
        x &= mask;
        if (stops != 0 && x > mask >> 8) {
            const uint64_t ones = UINT64_C(0x0101010101010101);
            cursor->next = next + ((mask & ones) * ones >> 56);
            return ttd_varint_squeeze(x);
        }
    }
    struct ttd_varint result = ttd_varint_slow(*cursor);
    *cursor = result.cursor;
    return result.value;
}

#endif
