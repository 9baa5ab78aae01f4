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

/** Reads 4 reserved bytes, which must be zero. */
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

/** Reads a varint, which must be at most `max`. */
uint64_t ttd_cursor_varint_max(struct ttd_cursor *cursor, uint64_t max);

/** Reads a varint, which must fit 32 bits. */
uint32_t ttd_cursor_varint32(struct ttd_cursor *cursor);

/** Splits off the next `size` bytes as a cursor of their own, empty on error. */
struct ttd_cursor ttd_cursor_split(struct ttd_cursor *cursor, size_t size);

/** Fails unless everything was read. */
void ttd_cursor_finish(struct ttd_cursor *cursor);

#endif
