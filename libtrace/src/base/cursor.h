/* SPDX-License-Identifier: MIT */
/**
 * Bounds-safe reading of untrusted bytes. The first error sticks and empties the cursor: every
 * further read gives 0, so that callers check once.
 */
#ifndef TTD_BASE_CURSOR_H
#define TTD_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct ttd_cursor {
    const uint8_t *next;
    const uint8_t *end;
    /** Description of the first error, in static storage; NULL before. */
    const char *error;
};

static inline struct ttd_cursor ttd_cursor_of(const uint8_t *data, size_t size)
{
    struct ttd_cursor cursor = {data, data + size, NULL};
    return cursor;
}

static inline size_t ttd_cursor_left(const struct ttd_cursor *cursor)
{
    return (size_t)(cursor->end - cursor->next);
}

/** Records an error, unless there is one already. */
void ttd_cursor_fail(struct ttd_cursor *cursor, const char *what);

/** Records the error that `violation` describes, if it is not NULL. */
static inline void ttd_cursor_check(struct ttd_cursor *cursor, const char *violation)
{
    if (violation)
        ttd_cursor_fail(cursor, violation);
}

/** Returns the next `size` bytes; NULL, with an error, if there are fewer. */
const uint8_t *ttd_cursor_bytes(struct ttd_cursor *cursor, size_t size);

uint8_t ttd_cursor_get8(struct ttd_cursor *cursor);
uint32_t ttd_cursor_get32(struct ttd_cursor *cursor);
uint64_t ttd_cursor_get64(struct ttd_cursor *cursor);

/** Reads 4 reserved bytes; they must be zero. */
void ttd_cursor_reserved32(struct ttd_cursor *cursor);

/** The general case of ttd_cursor_varint(). */
uint64_t ttd_cursor_varint_slow(struct ttd_cursor *cursor);

/** Reads a varint. Any form but the shortest is an error. */
static inline uint64_t ttd_cursor_varint(struct ttd_cursor *cursor)
{
    if (cursor->next != cursor->end && *cursor->next < 0x80)
        return *cursor->next++;
    return ttd_cursor_varint_slow(cursor);
}

/** Reads a varint of at most `max`. */
uint64_t ttd_cursor_varint_max(struct ttd_cursor *cursor, uint64_t max);

/** Reads a varint of at most 32 bits. */
uint32_t ttd_cursor_varint32(struct ttd_cursor *cursor);

/** Splits off the next `size` bytes as a cursor of their own, empty on error. */
struct ttd_cursor ttd_cursor_split(struct ttd_cursor *cursor, size_t size);

/** Fails unless everything was read. */
void ttd_cursor_finish(struct ttd_cursor *cursor);

/*
 * Decoding of varints for the hottest loops. The cursor must be a local variable of the loop: its
 * address is not passed to any function that is not inlined, so the compiler keeps it in registers.
 */

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
