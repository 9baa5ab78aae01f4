/* SPDX-License-Identifier: MIT */
/** Payloads in columns (spec, "Columns"): the lengths of all columns, then the columns. */
#ifndef TTD_CODEC_COLUMNS_H
#define TTD_CODEC_COLUMNS_H

#include <ttdtrace/position.h>

#include "base/buffer.h"
#include "base/cursor.h"

/* Positions in payloads (spec, "Positions"): two varints in records, 16 bytes where sizes are
 * fixed.
 */

void ttd_encode_position(struct ttd_buffer *buffer, struct ttd_position position);
struct ttd_position ttd_decode_position(struct ttd_cursor *cursor);
/** Decodes the position of an occurrence; the invalid position is an error. */
struct ttd_position ttd_decode_valid_position(struct ttd_cursor *cursor);

void ttd_encode_fixed_position(struct ttd_buffer *buffer, struct ttd_position position);
/** Decodes the position of an occurrence; the invalid position is an error. */
struct ttd_position ttd_decode_fixed_position(struct ttd_cursor *cursor);

/** Whether a position is valid, or has the one form of the invalid position. */
static inline bool ttd_position_is_canonical(struct ttd_position position)
{
    return ttd_position_is_valid(position) || position.steps == UINT64_MAX;
}

/** Splits a cursor that stands at `count` 32-bit lengths into as many columns, and finishes it. */
void ttd_split_columns(struct ttd_cursor *cursor, struct ttd_cursor *columns, size_t count);

/** Checks that all columns are read. Fails `cursor` with the first error of a column, if there is
 * one.
 */
void ttd_finish_columns(struct ttd_cursor *cursor, struct ttd_cursor *columns, size_t count);

/** Appends the lengths of `count` columns, and the columns. A column that failed fails `buffer`. */
void ttd_join_columns(struct ttd_buffer *buffer, const struct ttd_buffer *columns, size_t count);

#endif
