/* SPDX-License-Identifier: MIT */
#include "travel/pass.h"

#include <string.h>

static enum ttd_status see_batch(void *context, const struct ttd_batch *batch)
{
    struct heap_pass *pass = context;
    if (batch->kind == TTD_KIND_LOSSES && (batch->made_up || !pass->has_losses))
        heap_losses_add(&pass->losses, batch);
    return pass->hook ? pass->hook->batch(pass->hook->context, batch) : TTD_OK;
}

/* Losses may be recorded long after they happened: an earlier position needs them beforehand. */
static enum ttd_status read_losses(struct heap_pass *pass, struct ttd_reader *reader,
                                   struct ttd_error *error)
{
    enum ttd_status status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_LOSSES));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        if (status == TTD_OK && batch.kind == TTD_KIND_LOSSES && !batch.made_up)
            heap_losses_add(&pass->losses, &batch);
    }
    pass->has_losses = true;
    return heap_is_over(status) ? TTD_OK : status;
}

static enum ttd_status begin(struct heap_pass *pass, struct ttd_reader *reader,
                             const struct heap_keyframes *keyframes, struct ttd_position at,
                             const struct heap_observer *observer,
                             const struct heap_batch_hook *hook, struct ttd_error *error)
{
    memset(pass, 0, sizeof *pass);
    pass->hook = hook;
    struct heap_batch_hook own = {.context = pass, .batch = see_batch};
    enum ttd_status status = TTD_OK;
    if (keyframes || ttd_position_compare(at, ttd_position_max()) < 0)
        status = read_losses(pass, reader, error);
    if (status != TTD_OK)
        return status;
    return heap_cursor_init(&pass->cursor, reader, HEAP_CURSOR_KINDS, keyframes, observer, &own);
}

static enum ttd_status go(struct heap_pass *pass, struct ttd_position at, struct ttd_error *error)
{
    enum ttd_status status = heap_cursor_seek(&pass->cursor, at, error);
    pass->reached_end = pass->cursor.at_end && !pass->cursor.batch.count;
    return status;
}

enum ttd_status heap_pass_run(struct heap_pass *pass, struct ttd_reader *reader,
                              const struct heap_keyframes *keyframes, struct ttd_position at,
                              const struct heap_observer *observer,
                              const struct heap_batch_hook *hook, struct ttd_error *error)
{
    enum ttd_status status = begin(pass, reader, keyframes, at, observer, hook, error);
    return status == TTD_OK ? go(pass, at, error) : status;
}

enum ttd_status heap_pass_run_range(struct heap_pass *pass, struct ttd_reader *reader,
                                    const struct heap_keyframes *keyframes,
                                    struct ttd_position from, struct ttd_position at,
                                    const struct heap_observer *observer,
                                    const struct heap_batch_hook *hook, struct ttd_error *error)
{
    /* A keyframe could be at the first position, too, and nothing of the range is passed over. */
    if (ttd_position_compare(from, ttd_position_min()) == 0)
        keyframes = NULL;
    enum ttd_status status = begin(pass, reader, keyframes, at, observer, hook, error);
    if (status == TTD_OK && keyframes)
        status = go(pass, heap_position_before(from), error);
    /* From there on nothing is passed over. */
    pass->cursor.keyframes = NULL;
    return status == TTD_OK ? go(pass, at, error) : status;
}

enum ttd_status heap_pass_run_sums(struct heap_pass *pass, struct ttd_reader *reader,
                                   const struct heap_keyframes *keyframes, struct ttd_position at,
                                   struct heap_tables *sums, const struct heap_batch_hook *hook,
                                   struct ttd_error *error)
{
    enum ttd_status status = begin(pass, reader, keyframes, at, NULL, hook, error);
    pass->cursor.sums = sums;
    return status == TTD_OK ? go(pass, at, error) : status;
}

enum ttd_status heap_pass_run_peak(struct heap_pass *pass, struct ttd_reader *reader,
                                   const struct heap_batch_hook *hook, struct ttd_error *error)
{
    enum ttd_status status = begin(pass, reader, NULL, ttd_position_max(), NULL, hook, error);
    heap_replay_keep_peak(&pass->cursor.replay);
    return status == TTD_OK ? go(pass, ttd_position_max(), error) : status;
}

struct heap_outcome heap_pass_outcome(const struct heap_pass *pass)
{
    const struct heap_cursor *cursor = &pass->cursor;
    return (struct heap_outcome){.losses = pass->losses,
                                 .counts = cursor->replay.counts,
                                 .position = cursor->replay.position,
                                 .in_flight = cursor->replay.queue.count,
                                 .reached_end = pass->reached_end,
                                 .truncated = cursor->truncated,
                                 .error = cursor->error};
}

void heap_pass_end(struct heap_pass *pass, struct heap_outcome *outcome)
{
    *outcome = heap_pass_outcome(pass);
    heap_pass_free(pass);
}

void heap_pass_free(struct heap_pass *pass)
{
    heap_cursor_free(&pass->cursor);
}
