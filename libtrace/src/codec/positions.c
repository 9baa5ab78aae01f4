/* SPDX-License-Identifier: MIT */
#include "codec/positions.h"

void ttd_encode_position(struct ttd_buffer *out, struct ttd_position position)
{
    ttd_buffer_put_varint(out, position.sequence);
    ttd_buffer_put_varint(out, position.steps);
}

struct ttd_position ttd_decode_position(struct ttd_cursor *in)
{
    /* In two statements: the order of initialisers is not defined. */
    struct ttd_position position;
    position.sequence = ttd_cursor_varint(in);
    position.steps = ttd_cursor_varint(in);
    return position;
}

/** Fails unless the position, which was read last, is valid. Returns it. */
static struct ttd_position require_valid(struct ttd_cursor *in, struct ttd_position position)
{
    if (!ttd_position_is_valid(position))
        ttd_cursor_fail(in, "invalid position");
    return position;
}

struct ttd_position ttd_decode_valid_position(struct ttd_cursor *in)
{
    return require_valid(in, ttd_decode_position(in));
}

void ttd_encode_fixed_position(struct ttd_buffer *out, struct ttd_position position)
{
    ttd_buffer_put64(out, position.sequence);
    ttd_buffer_put64(out, position.steps);
}

struct ttd_position ttd_decode_fixed_position(struct ttd_cursor *in)
{
    struct ttd_position position;
    position.sequence = ttd_cursor_get64(in);
    position.steps = ttd_cursor_get64(in);
    return require_valid(in, position);
}
