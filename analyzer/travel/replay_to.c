/* SPDX-License-Identifier: MIT */
#include "travel/replay_to.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
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

/* Whether no event needs to be seen: the route leads to the end of a trace that is to be checked.
 */
static bool replay_to_may_net(const struct heap_trace *trace, const struct heap_route *route)
{
    return route->wants_blocks_only && !route->observer && !route->keeps_peak && !route->kinds &&
           !trace->keyframes && !trace->is_checked &&
           ttd_position_compare(route->to, ttd_position_max()) == 0;
}

/* Arrives at the end without a replay, if the trace allows it; else goes back to the start. */
static enum ttd_status arrival_net(struct heap_arrival *arrival, const struct heap_trace *trace,
                                   struct ttd_error *error)
{
    struct heap_cursor *cursor = &arrival->cursor;
    bool is_done = false;
    enum ttd_status status = heap_end_blocks_find(&cursor->replay, trace, &is_done, error);
    if (status != TTD_OK)
        return status;
    if (!is_done) {
        status = heap_replay_reset(&cursor->replay);
        return status == TTD_OK ? ttd_reader_rewind_checked(cursor->reader, cursor->kinds) : status;
    }
    cursor->at_end = true;
    cursor->target = ttd_position_max();
    return TTD_OK;
}

enum ttd_status heap_replay_to(struct heap_arrival *arrival, const struct heap_trace *trace,
                               const struct heap_route *route, struct ttd_error *error)
{
    enum ttd_status status = arrival_begin(arrival, trace, route, error);
    if (status == TTD_OK && replay_to_may_net(trace, route))
        status = arrival_net(arrival, trace, error);
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

struct range_replay {
    const struct heap_range_route *route;
    struct heap_address_range range;
    /** The lowest address of the range, and of all blocks so far that reach into it. */
    uint64_t lowest;
    struct heap_replay replay;
    /** The events of a batch that concern the range, and their addresses, two for each. */
    struct ttd_event *events;
    size_t capacity;
    uint64_t *addresses;
    size_t address_capacity;
    /** Batches that were applied. */
    uint64_t batches;
    /** Number of the event that must come next; UINT64_MAX if any may. */
    uint64_t next;
};

/* Whether a block at `address` may have an address of the range: one that was passed on does. */
static inline bool replay_to_is_near(const struct range_replay *state, uint64_t address)
{
    return address - state->lowest <= state->range.last - state->lowest;
}

/* Whether the block of a ReAlloc is acquired only after the next event, perhaps in another
 * batch. */
static inline bool replay_to_is_in_flight(const struct ttd_event *event,
                                          const struct ttd_event *end)
{
    return event->action == TTD_ACTION_REALLOC &&
           (event + 1 == end ||
            ttd_position_compare(event->time_end, ttd_event_position(event + 1)) > 0);
}

/*
 * A block of the range is changed only by events at its own address, or by its heap's destruction.
 * Its address is known from the acquiring event; that reaches into the range; a ReAlloc to the same
 * address may have begun before, and end after that. More events do no harm: the replay is right
 * for each address by itself.
 */
static inline bool replay_to_is_relevant(struct range_replay *state, const struct ttd_event *event,
                                         const struct ttd_event *end)
{
    if (event->address && event->address < state->lowest &&
        state->range.first - event->address < event->size)
        state->lowest = event->address;
    return replay_to_is_near(state, event->address) ||
           replay_to_is_near(state, event->base_address) || event->action == TTD_ACTION_DESTROY ||
           replay_to_is_in_flight(event, end);
}

static uint32_t replay_to_range_add_address(uint64_t *addresses, size_t *count, uint64_t address)
{
    if (!address)
        return 0;
    addresses[*count] = address;
    return (uint32_t)(*count)++;
}

/* Applies events as a chunk of their own, in which each address has an ordinal of its own. */
static enum ttd_status replay_to_apply(struct range_replay *state, size_t count)
{
    size_t applied;
    size_t address_count = 0;
    enum ttd_status status = grow_array((void **)&state->addresses, &state->address_capacity,
                                        2 * count, sizeof *state->addresses);
    if (status != TTD_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        struct ttd_event *event = &state->events[i];
        event->address_ordinal =
            replay_to_range_add_address(state->addresses, &address_count, event->address);
        event->base_ordinal =
            replay_to_range_add_address(state->addresses, &address_count, event->base_address);
    }
    struct ttd_batch batch = {.kind = TTD_KIND_EVENTS,
                              .count = count,
                              .chunk = {.offset = state->batches++},
                              .u.events = state->events,
                              .addresses = state->addresses,
                              .address_count = address_count};
    return heap_replay_apply(&state->replay, &batch, ttd_position_max(), &applied);
}

static enum ttd_status replay_to_see_events(struct range_replay *state,
                                            const struct ttd_batch *batch)
{
    size_t count = 0;
    const struct ttd_event *end = batch->u.events + batch->count;
    for (const struct ttd_event *event = batch->u.events; event < end; event++) {
        if (!replay_to_is_relevant(state, event, end))
            continue;
        enum ttd_status status =
            grow_array((void **)&state->events, &state->capacity, count + 1, sizeof *state->events);
        if (status != TTD_OK)
            return status;
        state->events[count++] = *event;
    }
    return count ? replay_to_apply(state, count) : TTD_OK;
}

/* Starts at the keyframe of the route. All its blocks become live: those outside of the range do no
 * harm, since the replay is right for each address by itself. */
static enum ttd_status replay_to_start_at_keyframe(struct range_replay *state,
                                                   const struct heap_trace *trace,
                                                   struct ttd_error *error)
{
    const struct heap_range_route *route = state->route;
    size_t cursor = 0;
    struct heap_block *block;
    enum ttd_status status =
        heap_keyframes_restore(trace->keyframes, route->start, &state->replay, NULL);
    while (status == TTD_OK && (block = heap_live_each(&state->replay.live, &cursor))) {
        if (!heap_block_covers(block, state->range.first, state->range.last))
            continue;
        state->lowest = block->address < state->lowest ? block->address : state->lowest;
        if (route->live)
            status = route->live(route->observer->context, block);
    }
    state->next = route->start->next;
    return status == TTD_OK ? ttd_reader_seek_event(trace->reader, state->next, error) : status;
}

static enum ttd_status replay_to_range_see_batch(struct range_replay *state,
                                                 const struct heap_trace *trace,
                                                 const struct ttd_batch *batch)
{
    bool has_events = batch->kind == TTD_KIND_EVENTS;
    if (batch->kind == TTD_KIND_LOSSES && batch->synthetic)
        return TTD_ERROR_CORRUPT;
    if (has_events && state->next != UINT64_MAX && batch->u.events[0].number != state->next)
        return TTD_ERROR_CORRUPT;
    enum ttd_status status =
        trace->hook.batch ? trace->hook.batch(trace->hook.context, batch) : TTD_OK;
    if (status == TTD_OK)
        status = heap_parents_add(&state->replay.live.parents, batch);
    state->next = has_events ? UINT64_MAX : state->next;
    return status == TTD_OK && has_events ? replay_to_see_events(state, batch) : status;
}

static enum ttd_status replay_to_range_read_part(struct range_replay *state,
                                                 const struct heap_trace *trace,
                                                 struct heap_prefetcher *prefetcher,
                                                 struct ttd_error *error)
{
    enum ttd_status status = ttd_reader_rewind(trace->reader, HEAP_CURSOR_KINDS);
    if (status == TTD_OK && state->route->start)
        status = replay_to_start_at_keyframe(state, trace, error);
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = heap_prefetcher_next(prefetcher, &batch, error);
        bool is_behind = status == TTD_OK && batch.kind == TTD_KIND_EVENTS &&
                         batch.u.events[0].number >= state->route->end;
        if (status == TTD_END || is_behind)
            return heap_replay_settle(&state->replay, ttd_position_max());
        if (status != TTD_OK)
            return heap_is_over(status) ? TTD_ERROR_CORRUPT : status;
        status = replay_to_range_see_batch(state, trace, &batch);
    }
    return status;
}

enum ttd_status heap_replay_range(const struct heap_trace *trace,
                                  const struct heap_range_route *route, struct ttd_error *error)
{
    struct range_replay state = {
        .route = route, .range = route->range, .lowest = route->range.first, .next = UINT64_MAX};
    struct heap_prefetcher prefetcher;
    heap_prefetcher_init(&prefetcher, trace->reader);
    enum ttd_status status = heap_replay_init(&state.replay, route->observer);
    if (status == TTD_OK)
        status = replay_to_range_read_part(&state, trace, &prefetcher, error);
    heap_prefetcher_free(&prefetcher);
    heap_replay_free(&state.replay);
    free(state.events);
    free(state.addresses);
    return status == TTD_END ? TTD_OK : status;
}
