/* SPDX-License-Identifier: MIT */
/** Payloads in columns (spec, "Columns"): the lengths of all columns, then the columns. */
#ifndef TTD_CODEC_COLUMNS_H
#define TTD_CODEC_COLUMNS_H

#include "base/buffer.h"
#include "base/cursor.h"

/** Splits a cursor that stands at `count` 32-bit lengths into as many columns, and finishes it. */
void ttd_split_columns(struct ttd_cursor *cursor, struct ttd_cursor *columns, size_t count);

/** Checks that all columns are read. Fails `cursor` with the first error of a column, if there is
 * one.
 */
void ttd_finish_columns(struct ttd_cursor *cursor, struct ttd_cursor *columns, size_t count);

/** Appends the lengths of `count` columns, and the columns. A column that failed fails `buffer`. */
void ttd_join_columns(struct ttd_buffer *buffer, const struct ttd_buffer *columns, size_t count);

#endif
