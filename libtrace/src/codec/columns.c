/* SPDX-License-Identifier: MIT */
#include "codec/columns.h"

void ttd_encode_position(struct ttd_buffer *buffer, struct ttd_position position)
{
    ttd_buffer_put_varint(buffer, position.sequence);
    ttd_buffer_put_varint(buffer, position.steps);
}

struct ttd_position ttd_decode_position(struct ttd_cursor *cursor)
{
    /* In two statements: the order of initialisers is not defined. */
    struct ttd_position position;
    position.sequence = ttd_cursor_varint(cursor);
    position.steps = ttd_cursor_varint(cursor);
    return position;
}

/** Fails unless the position that was read last is valid. Returns it. */
static struct ttd_position columns_require_valid(struct ttd_cursor *cursor,
                                                 struct ttd_position position)
{
    if (!ttd_position_is_valid(position))
        ttd_cursor_fail(cursor, "invalid position");
    return position;
}

struct ttd_position ttd_decode_valid_position(struct ttd_cursor *cursor)
{
    return columns_require_valid(cursor, ttd_decode_position(cursor));
}

void ttd_encode_fixed_position(struct ttd_buffer *buffer, struct ttd_position position)
{
    ttd_buffer_put64(buffer, position.sequence);
    ttd_buffer_put64(buffer, position.steps);
}

struct ttd_position ttd_decode_fixed_position(struct ttd_cursor *cursor)
{
    struct ttd_position position;
    position.sequence = ttd_cursor_get64(cursor);
    position.steps = ttd_cursor_get64(cursor);
    return columns_require_valid(cursor, position);
}

void ttd_split_columns(struct ttd_cursor *cursor, struct ttd_cursor *columns, size_t count)
{
    struct ttd_cursor lengths = ttd_cursor_split(cursor, 4 * count);
    for (size_t i = 0; i < count; i++)
        columns[i] = ttd_cursor_split(cursor, ttd_cursor_get32(&lengths));
    ttd_cursor_finish(cursor);
}

void ttd_finish_columns(struct ttd_cursor *cursor, struct ttd_cursor *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        /* A column with bytes left over is corrupt, like a payload: one encoding for each content.
         */
        ttd_cursor_finish(&columns[i]);
        ttd_cursor_check(cursor, columns[i].error);
    }
}

void ttd_join_columns(struct ttd_buffer *buffer, const struct ttd_buffer *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        /* A column without memory is too short, but looks right: only its flag shows it. */
        buffer->failed |= columns[i].failed;
        ttd_buffer_put32(buffer, (uint32_t)columns[i].size);
    }
    for (size_t i = 0; i < count; i++)
        ttd_buffer_put(buffer, columns[i].data, columns[i].size);
}
