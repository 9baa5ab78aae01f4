/* SPDX-License-Identifier: MIT */
/** Positions in payloads (spec, "Positions"): two varints in records, 16 bytes where sizes are
 * fixed.
 */
#ifndef TTD_CODEC_POSITIONS_H
#define TTD_CODEC_POSITIONS_H

#include <ttdtrace/position.h>

#include "base/buffer.h"
#include "base/cursor.h"

void ttd_encode_position(struct ttd_buffer *buffer, struct ttd_position position);
struct ttd_position ttd_decode_position(struct ttd_cursor *cursor);
/** Decodes a position at which something happened; the invalid position is an error. */
struct ttd_position ttd_decode_valid_position(struct ttd_cursor *cursor);

void ttd_encode_fixed_position(struct ttd_buffer *buffer, struct ttd_position position);
/** Decodes a position at which something happened; the invalid position is an error. */
struct ttd_position ttd_decode_fixed_position(struct ttd_cursor *cursor);

/** Whether a position is valid, or has the one form of the invalid position. */
static inline bool ttd_position_is_canonical(struct ttd_position position)
{
    return ttd_position_is_valid(position) || position.steps == UINT64_MAX;
}

#endif
