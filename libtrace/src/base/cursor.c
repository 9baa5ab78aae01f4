/* SPDX-License-Identifier: MIT */
#include "base/cursor.h"

void ttd_cursor_fail(struct ttd_cursor *cursor, const char *what)
{
    if (!cursor->error)
        cursor->error = what;
    /* Nothing is left to read: loops over a wrong count end, and no later error hides the first. */
    cursor->next = cursor->end;
}

const uint8_t *ttd_cursor_bytes(struct ttd_cursor *cursor, size_t size)
{
    if (size > ttd_cursor_left(cursor)) {
        ttd_cursor_fail(cursor, "payload too short");
        return NULL;
    }
    const uint8_t *bytes = cursor->next;
    cursor->next += size;
    return bytes;
}

uint8_t ttd_cursor_get8(struct ttd_cursor *cursor)
{
    const uint8_t *p = ttd_cursor_bytes(cursor, 1);
    return p ? *p : 0;
}

uint32_t ttd_cursor_get32(struct ttd_cursor *cursor)
{
    const uint8_t *p = ttd_cursor_bytes(cursor, 4);
    return p ? ttd_get32(p) : 0;
}

uint64_t ttd_cursor_get64(struct ttd_cursor *cursor)
{
    const uint8_t *p = ttd_cursor_bytes(cursor, 8);
    return p ? ttd_get64(p) : 0;
}

void ttd_cursor_reserved32(struct ttd_cursor *cursor)
{
    if (ttd_cursor_get32(cursor) != 0)
        ttd_cursor_fail(cursor, "reserved field is not zero");
}

uint64_t ttd_cursor_varint_slow(struct ttd_cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (cursor->next == cursor->end) {
            ttd_cursor_fail(cursor, "payload too short");
            return 0;
        }
        uint8_t byte = *cursor->next++;
        /* The tenth byte holds the last bit of 64. */
        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            /* One value has one encoding: else hashes of equal contents would differ, and writers
             * disagree. */
            if (byte == 0 && shift != 0) {
                ttd_cursor_fail(cursor, "overlong varint");
                return 0;
            }
            return value;
        }
    }
    ttd_cursor_fail(cursor, "varint exceeds 64 bits");
    return 0;
}

struct ttd_varint ttd_varint_slow(struct ttd_cursor cursor)
{
    struct ttd_varint result;
    result.value = ttd_cursor_varint_slow(&cursor);
    result.cursor = cursor;
    return result;
}

uint64_t ttd_cursor_varint_max(struct ttd_cursor *cursor, uint64_t max)
{
    uint64_t value = ttd_cursor_varint(cursor);
    if (value > max) {
        ttd_cursor_fail(cursor, "value out of range");
        return 0;
    }
    return value;
}

uint32_t ttd_cursor_varint32(struct ttd_cursor *cursor)
{
    return (uint32_t)ttd_cursor_varint_max(cursor, UINT32_MAX);
}

struct ttd_cursor ttd_cursor_split(struct ttd_cursor *cursor, size_t size)
{
    const uint8_t *bytes = ttd_cursor_bytes(cursor, size);
    return bytes ? ttd_cursor_of(bytes, size) : ttd_cursor_of(cursor->end, 0);
}

void ttd_cursor_finish(struct ttd_cursor *cursor)
{
    if (cursor->next != cursor->end)
        ttd_cursor_fail(cursor, "bytes left over in the payload");
}
