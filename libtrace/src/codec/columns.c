/* SPDX-License-Identifier: MIT */
#include "codec/columns.h"

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
        /* A column without memory is too short, but looks right: only its flag tells. */
        buffer->failed |= columns[i].failed;
        ttd_buffer_put32(buffer, (uint32_t)columns[i].size);
    }
    for (size_t i = 0; i < count; i++)
        ttd_buffer_put(buffer, columns[i].data, columns[i].size);
}
