/* SPDX-License-Identifier: MIT */
#include "codec/positions.h"

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

/** Fails unless the position, which was read last, is valid. Returns it. */
static struct ttd_position require_valid(struct ttd_cursor *cursor, struct ttd_position position)
{
    if (!ttd_position_is_valid(position))
        ttd_cursor_fail(cursor, "invalid position");
    return position;
}

struct ttd_position ttd_decode_valid_position(struct ttd_cursor *cursor)
{
    return require_valid(cursor, ttd_decode_position(cursor));
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
    return require_valid(cursor, position);
}
