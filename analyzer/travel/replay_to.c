/* SPDX-License-Identifier: MIT */
#include "travel/replay_to.h"

#include <stdlib.h>
#include <string.h>

#include "heap/heap_live.h"
#include "travel/end_blocks.h"
#include "travel/heap_cursor.h"

/*
 * Strays: live blocks of a heap with a parent that lie in no block of the parent. Either their
 * memory was released with the block around them and no call reported it, or the program reported
 * wrong addresses. The trace cannot be right about their memory.
 */

/* Room for the blocks of a table. */
struct room {
    struct sort_key *keys;
    struct sort_key *spare;
    /** Blocks that begin before the next one and may hold it. */
    const struct heap_block **open;
};

static uint64_t strays_block_last(const struct heap_block *block)
{
    uint64_t last_offset = block->size ? block->size - 1 : 0;
    return last_offset > UINT64_MAX - block->address ? UINT64_MAX : block->address + last_offset;
}

/* Whether a block can lie in another one. One that is younger has the memory anew, unless a
 * reallocation has left it in its place. */
static bool strays_may_hold(const struct heap_block *outer, const struct heap_block *block)
{
    bool is_older = outer->action == TTD_ACTION_REALLOC ||
                    ttd_position_compare(outer->allocated, block->allocated) <= 0;
    return outer->heap < block->heap && strays_block_last(outer) >= strays_block_last(block) &&
           is_older;
}

/* A parent has a lower id. Blocks of other heaps in between (only in a faulty trace) are looked at
 * up to a limit. */
static bool replay_to_is_stray(const struct heap_block *block, const struct heap_block **open,
                               size_t count)
{
    size_t least = count > HEAP_SHARED_MAX ? count - HEAP_SHARED_MAX : 0;
    for (size_t i = count; i > least; i--) {
        if (strays_may_hold(open[i - 1], block))
            return false;
    }
    return true;
}

static uint64_t replay_to_count(const struct heap_live *live, const struct room *room)
{
    const struct heap_block *block;
    size_t cursor = 0;
    size_t key_count = 0;
    size_t open_count = 0;
    uint64_t strays = 0;
    while (key_count < live->count && (block = heap_live_each(live, &cursor)))
        room->keys[key_count++] = heap_block_key(live->blocks, block);
    heap_sort_blocks(live->blocks, room->keys, room->spare, key_count);
    for (size_t i = 0; i < key_count; i++) {
        block = &live->blocks[room->keys[i].index];
        while (open_count && strays_block_last(room->open[open_count - 1]) < block->address)
            open_count--;
        if (heap_parents_get(&live->parents, block->heap) != TTD_NONE)
            strays += replay_to_is_stray(block, room->open, open_count);
        room->open[open_count++] = block;
    }
    return strays;
}

/** Counts the strays. If memory runs out, all blocks of heaps with a parent count as strays. Works
 * without the index of the table. */
static uint64_t replay_to_heap_count_strays(const struct heap_live *live)
{
    uint64_t nested = live->count - live->outer_count;
    if (!nested)
        return 0;
    struct room room = {.keys = malloc((size_t)live->count * sizeof *room.keys),
                        .spare = malloc((size_t)live->count * sizeof *room.spare),
                        .open = malloc((size_t)live->count * sizeof *room.open)};
    uint64_t strays = room.keys && room.spare && room.open ? replay_to_count(live, &room) : nested;
    free(room.keys);
    free(room.spare);
    free(room.open);
    return strays;
}

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

static enum ttd_status arrival_begin(struct heap_arrival *arrival, const struct heap_trace *trace,
                                     const struct heap_route *route, struct ttd_error *error)
{
    memset(arrival, 0, sizeof *arrival);
    arrival->hook = trace->hook;
    /* A keyframe could be at the first position, too: whoever wants all effects gets none. */
    bool needs_all = route->observer && ttd_position_compare(route->from, ttd_position_min()) == 0;
    bool takes_keyframes = !needs_all && !route->keeps_peak;
    struct heap_trace replayed = {.reader = trace->reader,
                                  .keyframes = takes_keyframes ? trace->keyframes : NULL,
                                  .hook = {.context = arrival, .batch = arrival_see_batch},
                                  .is_checked = trace->is_checked,
                                  .is_one_of_two = trace->is_one_of_two};
    enum ttd_status status = TTD_OK;
    /* A loss may be recorded long after it happened, behind the position that the replay goes to:
     * all recorded losses are read beforehand, unless the replay meets them anyway. */
    if (replayed.keyframes || ttd_position_compare(route->to, ttd_position_max()) < 0) {
        status = heap_losses_read(trace->reader, arrival_add_losses, arrival, error);
        arrival->has_losses = true;
    }
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

/* Whether no event needs to be seen. */
static bool replay_to_may_net(const struct heap_trace *trace, const struct heap_route *route)
{
    return route->wants_blocks_only && !route->observer && !route->keeps_peak && !route->kinds &&
           !trace->keyframes && !trace->is_checked;
}

/* Goes back to the start for a replay of all calls. */
static enum ttd_status arrival_start_over(struct heap_arrival *arrival)
{
    struct heap_cursor *cursor = &arrival->cursor;
    enum ttd_status status = heap_replay_reset(&cursor->replay);
    return status == TTD_OK ? ttd_reader_rewind_checked(cursor->reader, cursor->kinds) : status;
}

/* Arrives without a replay at the position, or near it, if the trace allows it; else goes back to
 * the start. */
static enum ttd_status arrival_net(struct heap_arrival *arrival, const struct heap_trace *trace,
                                   struct ttd_position to, struct ttd_error *error)
{
    struct heap_cursor *cursor = &arrival->cursor;
    struct end_blocks found;
    enum ttd_status status = heap_end_blocks_find(&cursor->replay, trace, to, &found, error);
    if (status == TTD_OK && found.is_done && !found.is_over) {
        status = ttd_reader_rewind(cursor->reader, cursor->kinds);
        found.is_done = status == TTD_OK &&
                        ttd_reader_seek_event(cursor->reader, cursor->replay.next, error) == TTD_OK;
    }
    if (status != TTD_OK)
        return status;
    if (!found.is_done)
        return arrival_start_over(arrival);
    cursor->at_end = found.is_over;
    cursor->target = found.is_over ? to : cursor->target;
    return TTD_OK;
}

/* Goes to the end by sums of chunks, if the trace allows it; else goes back to the start. */
static enum ttd_status arrival_go_forward(struct heap_arrival *arrival,
                                          const struct heap_trace *trace,
                                          const struct heap_route *route, struct ttd_error *error)
{
    const struct heap_forward *forward = route->forward;
    struct heap_cursor *cursor = &arrival->cursor;
    bool is_done;
    enum ttd_status status = heap_forward_replay(&cursor->replay, trace, forward, &is_done, error);
    if (status == TTD_OK && !is_done) {
        forward->observer->restart(forward->observer->context);
        return arrival_start_over(arrival);
    }
    cursor->at_end = is_done;
    cursor->target = route->to;
    return status;
}

enum ttd_status heap_replay_to(struct heap_arrival *arrival, const struct heap_trace *trace,
                               const struct heap_route *route, struct ttd_error *error)
{
    enum ttd_status status = arrival_begin(arrival, trace, route, error);
    if (status == TTD_OK && replay_to_may_net(trace, route))
        status = arrival_net(arrival, trace, route->to, error);
    if (status == TTD_OK && route->forward && !trace->is_checked)
        status = arrival_go_forward(arrival, trace, route, error);
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
    counts.strays = has_sums ? 0 : replay_to_heap_count_strays(&cursor->replay.live);
    return (struct heap_outcome){.losses = arrival->losses,
                                 .counts = counts,
                                 .left = cursor->replay.left,
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
