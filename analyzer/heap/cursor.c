/* SPDX-License-Identifier: MIT */
#include "heap/cursor.h"

ttd_status heap_cursor_init(heap_cursor *cursor, ttd_reader *reader, uint32_t kinds,
                            const heap_observer *observer, const heap_batch_hook *hook)
{
    *cursor = (heap_cursor){.reader = reader, .kinds = kinds};
    if (hook)
        cursor->hook = *hook;
    ttd_status status = heap_replay_init(&cursor->replay, observer);
    return status == TTD_OK ? ttd_reader_rewind(reader, kinds) : status;
}

void heap_cursor_free(heap_cursor *cursor)
{
    heap_replay_free(&cursor->replay);
}

static ttd_status start_over(heap_cursor *cursor)
{
    cursor->count = 0;
    cursor->at_end = false;
    ttd_status status = heap_replay_reset(&cursor->replay);
    return status == TTD_OK ? ttd_reader_rewind(cursor->reader, cursor->kinds) : status;
}

/* Reads until there are events, or the end. */
static ttd_status refill(heap_cursor *cursor, ttd_error *error)
{
    while (!cursor->count && !cursor->at_end) {
        ttd_batch batch;
        ttd_status status = ttd_reader_next(cursor->reader, &batch, error);
        if (status == TTD_ERROR_TRUNCATED) {
            cursor->truncated = true;
            cursor->error = *error;
        }
        if (status == TTD_END || status == TTD_ERROR_TRUNCATED) {
            cursor->at_end = true;
            return TTD_OK;
        }
        if (status == TTD_OK && cursor->hook.batch)
            status = cursor->hook.batch(cursor->hook.context, &batch);
        if (status != TTD_OK)
            return status;
        if (batch.kind == TTD_KIND_EVENTS) {
            cursor->events = batch.u.events;
            cursor->count = batch.count;
            cursor->chunk = batch.chunk.number;
        }
    }
    return TTD_OK;
}

ttd_status heap_cursor_seek(heap_cursor *cursor, ttd_position target, ttd_error *error)
{
    ttd_status status = TTD_OK;
    if (ttd_position_compare(target, cursor->target) < 0)
        status = start_over(cursor);
    cursor->target = target;
    while (status == TTD_OK) {
        status = refill(cursor, error);
        if (status != TTD_OK || !cursor->count)
            break;
        size_t applied = 0;
        status = heap_replay_apply(&cursor->replay, cursor->chunk, cursor->events, cursor->count,
                                   target, &applied);
        cursor->events += applied;
        cursor->count -= applied;
        if (cursor->count)
            break;
    }
    return status == TTD_OK ? heap_replay_settle(&cursor->replay, target) : status;
}
