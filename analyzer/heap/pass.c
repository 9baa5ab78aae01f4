/* SPDX-License-Identifier: MIT */
#include "heap/pass.h"

#include <string.h>

static ttd_status see_batch(void *context, const ttd_batch *batch)
{
    heap_pass *pass = context;
    if (batch->kind == TTD_KIND_LOSSES && (batch->made_up || !pass->has_losses))
        heap_losses_add(&pass->losses, batch);
    return pass->hook ? pass->hook->batch(pass->hook->context, batch) : TTD_OK;
}

/* Losses may be recorded long after they happened: an earlier position needs them beforehand. */
static ttd_status read_losses(heap_pass *pass, ttd_reader *reader, ttd_error *error)
{
    ttd_status status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_LOSSES));
    while (status == TTD_OK) {
        ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        if (status == TTD_OK && batch.kind == TTD_KIND_LOSSES && !batch.made_up)
            heap_losses_add(&pass->losses, &batch);
    }
    pass->has_losses = true;
    return heap_is_over(status) ? TTD_OK : status;
}

static ttd_status begin(heap_pass *pass, ttd_reader *reader, const heap_keyframes *keyframes,
                        ttd_position at, const heap_observer *observer, const heap_batch_hook *hook,
                        ttd_error *error)
{
    memset(pass, 0, sizeof *pass);
    pass->hook = hook;
    heap_batch_hook own = {.context = pass, .batch = see_batch};
    ttd_status status = TTD_OK;
    if (keyframes || ttd_position_compare(at, ttd_position_max()) < 0)
        status = read_losses(pass, reader, error);
    if (status != TTD_OK)
        return status;
    return heap_cursor_init(&pass->cursor, reader, HEAP_CURSOR_KINDS, keyframes, observer, &own);
}

static ttd_status go(heap_pass *pass, ttd_position at, ttd_error *error)
{
    ttd_status status = heap_cursor_seek(&pass->cursor, at, error);
    pass->reached_end = pass->cursor.at_end && !pass->cursor.batch.count;
    return status;
}

ttd_status heap_pass_run(heap_pass *pass, ttd_reader *reader, const heap_keyframes *keyframes,
                         ttd_position at, const heap_observer *observer,
                         const heap_batch_hook *hook, ttd_error *error)
{
    ttd_status status = begin(pass, reader, keyframes, at, observer, hook, error);
    return status == TTD_OK ? go(pass, at, error) : status;
}

ttd_status heap_pass_run_range(heap_pass *pass, ttd_reader *reader, const heap_keyframes *keyframes,
                               ttd_position from, ttd_position at, const heap_observer *observer,
                               const heap_batch_hook *hook, ttd_error *error)
{
    /* A keyframe could be at the first position, too, and nothing of the range is passed over. */
    if (ttd_position_compare(from, ttd_position_min()) == 0)
        keyframes = NULL;
    ttd_status status = begin(pass, reader, keyframes, at, observer, hook, error);
    if (status == TTD_OK && keyframes)
        status = go(pass, heap_position_before(from), error);
    /* From there on nothing is passed over. */
    pass->cursor.keyframes = NULL;
    return status == TTD_OK ? go(pass, at, error) : status;
}

ttd_status heap_pass_run_sums(heap_pass *pass, ttd_reader *reader, const heap_keyframes *keyframes,
                              ttd_position at, heap_tables *sums, const heap_batch_hook *hook,
                              ttd_error *error)
{
    ttd_status status = begin(pass, reader, keyframes, at, NULL, hook, error);
    pass->cursor.sums = sums;
    return status == TTD_OK ? go(pass, at, error) : status;
}

ttd_status heap_pass_run_peak(heap_pass *pass, ttd_reader *reader, const heap_batch_hook *hook,
                              ttd_error *error)
{
    ttd_status status = begin(pass, reader, NULL, ttd_position_max(), NULL, hook, error);
    heap_replay_keep_peak(&pass->cursor.replay);
    return status == TTD_OK ? go(pass, ttd_position_max(), error) : status;
}

heap_outcome heap_pass_outcome(const heap_pass *pass)
{
    const heap_cursor *cursor = &pass->cursor;
    return (heap_outcome){.losses = pass->losses,
                          .counts = cursor->replay.counts,
                          .position = cursor->replay.position,
                          .in_flight = cursor->replay.queue.count,
                          .reached_end = pass->reached_end,
                          .truncated = cursor->truncated,
                          .error = cursor->error};
}

void heap_pass_end(heap_pass *pass, heap_outcome *outcome)
{
    *outcome = heap_pass_outcome(pass);
    heap_pass_free(pass);
}

void heap_pass_free(heap_pass *pass)
{
    heap_cursor_free(&pass->cursor);
}
