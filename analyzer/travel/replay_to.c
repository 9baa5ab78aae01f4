/* SPDX-License-Identifier: MIT */
#include "travel/replay_to.h"

#include <string.h>

#include "heap/strays.h"

static enum ttd_status arrival_add_losses(void *context, const struct ttd_batch *batch)
{
    struct heap_arrival *arrival = context;
    heap_losses_add(&arrival->losses, batch);
    return heap_gaps_add(&arrival->gaps, batch);
}

static enum ttd_status arrival_see_batch(void *context, const struct ttd_batch *batch)
{
    struct heap_arrival *arrival = context;
    enum ttd_status status = TTD_OK;
    if (batch->kind == TTD_KIND_LOSSES && (batch->synthetic || !arrival->has_losses))
        status = arrival_add_losses(arrival, batch);
    if (status != TTD_OK)
        return status;
    return arrival->hook.batch ? arrival->hook.batch(arrival->hook.context, batch) : TTD_OK;
}

/* A loss may be recorded long after it happened, behind the position that the replay goes to: all
 * recorded losses are read beforehand, unless the replay meets them anyway. */
static enum ttd_status read_losses(struct heap_arrival *arrival, struct ttd_reader *reader,
                                   struct ttd_error *error)
{
    enum ttd_status status = heap_losses_read(reader, arrival_add_losses, arrival, error);
    arrival->has_losses = true;
    return status;
}

/* A keyframe could be at the first position, too: whoever wants all effects gets none. */
static bool takes_keyframes(const struct heap_route *route)
{
    bool needs_all = route->observer && ttd_position_compare(route->from, ttd_position_min()) == 0;
    return !needs_all && !route->keeps_peak;
}

static enum ttd_status arrival_begin(struct heap_arrival *arrival, const struct heap_trace *trace,
                                     const struct heap_route *route, struct ttd_error *error)
{
    memset(arrival, 0, sizeof *arrival);
    arrival->hook = trace->hook;
    struct heap_trace replayed = {.reader = trace->reader,
                                  .keyframes = takes_keyframes(route) ? trace->keyframes : NULL,
                                  .hook = {.context = arrival, .batch = arrival_see_batch},
                                  .is_checked = trace->is_checked,
                                  .is_one_of_two = trace->is_one_of_two};
    enum ttd_status status = TTD_OK;
    if (replayed.keyframes || ttd_position_compare(route->to, ttd_position_max()) < 0)
        status = read_losses(arrival, trace->reader, error);
    if (status != TTD_OK)
        return status;
    status = heap_cursor_init(&arrival->cursor, &replayed, HEAP_CURSOR_KINDS | route->kinds,
                              route->observer);
    /* A summary does not have the blocks that a gap makes unknown. */
    arrival->cursor.sums = arrival->gaps.count ? NULL : route->sums;
    if (route->keeps_peak)
        heap_replay_keep_peak(&arrival->cursor.replay);
    return status;
}

static enum ttd_status arrival_go(struct heap_arrival *arrival, struct ttd_position position,
                                  struct ttd_error *error)
{
    enum ttd_status status = heap_cursor_seek(&arrival->cursor, position, error);
    arrival->reached_end = arrival->cursor.at_end && !arrival->cursor.batch.count;
    return status;
}

enum ttd_status heap_replay_to(struct heap_arrival *arrival, const struct heap_trace *trace,
                               const struct heap_route *route, struct ttd_error *error)
{
    enum ttd_status status = arrival_begin(arrival, trace, route, error);
    bool has_two_parts = route->observer && arrival->cursor.keyframes &&
                         ttd_position_compare(route->from, route->to) <= 0;
    if (status == TTD_OK && has_two_parts) {
        status = arrival_go(arrival, heap_position_before(route->from), error);
        arrival->cursor.keyframes = NULL;
    }
    return status == TTD_OK ? arrival_go(arrival, route->to, error) : status;
}

enum ttd_status heap_replay_on(struct heap_arrival *arrival, struct ttd_position position,
                               struct ttd_error *error)
{
    arrival->cursor.keyframes = NULL;
    return arrival_go(arrival, position, error);
}

void heap_arrival_free(struct heap_arrival *arrival)
{
    heap_cursor_free(&arrival->cursor);
    heap_gaps_free(&arrival->gaps);
}

struct heap_outcome heap_arrival_outcome(struct heap_arrival *arrival)
{
    const struct heap_cursor *cursor = &arrival->cursor;
    struct heap_counts counts = cursor->replay.counts;
    /* Blocks that only a summary has are not in the table: an answer that rests on one is uncertain
     * anyway. */
    bool has_sums = cursor->sums && cursor->sums->by[HEAP_BY_HEAP].count;
    counts.strays = has_sums ? 0 : heap_count_strays(&cursor->replay.live);
    return (struct heap_outcome){.losses = arrival->losses,
                                 .counts = counts,
                                 .position = cursor->replay.position,
                                 .unknown_before = heap_gaps_end(&arrival->gaps, cursor->target),
                                 .in_flight = cursor->replay.queue.count,
                                 .reached_end = arrival->reached_end,
                                 .truncated = cursor->truncated,
                                 .error = cursor->error};
}

void heap_arrival_end(struct heap_arrival *arrival, struct heap_outcome *outcome)
{
    *outcome = heap_arrival_outcome(arrival);
    heap_arrival_free(arrival);
}
