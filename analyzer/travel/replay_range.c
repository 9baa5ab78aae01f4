/* SPDX-License-Identifier: MIT */
#include "travel/replay_range.h"

#include <stdlib.h>

#include "base/grow.h"
#include "heap/sort_blocks.h"
#include "travel/heap_cursor.h"

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
static inline bool is_near(const struct range_replay *state, uint64_t address)
{
    return address - state->lowest <= state->range.last - state->lowest;
}

/* Whether the block of a ReAlloc is acquired only after the next event, which is perhaps in another
 * batch. */
static inline bool is_in_flight(const struct ttd_event *event, const struct ttd_event *end)
{
    return event->action == TTD_ACTION_REALLOC &&
           (event + 1 == end ||
            ttd_position_compare(event->time_end, ttd_event_position(event + 1)) > 0);
}

/*
 * A block of the range is changed only by events at its own address, or by its heap's destruction.
 * Its address is known from the event that acquires it, which reaches into the range; a ReAlloc to
 * the same address may have begun before, and end after that. More events do no harm: the replay is
 * right for each address by itself.
 */
static inline bool is_relevant(struct range_replay *state, const struct ttd_event *event,
                               const struct ttd_event *end)
{
    if (event->address && event->address < state->lowest &&
        state->range.first - event->address < event->size)
        state->lowest = event->address;
    return is_near(state, event->address) || is_near(state, event->base_address) ||
           event->action == TTD_ACTION_DESTROY || is_in_flight(event, end);
}

static uint32_t range_add_address(uint64_t *addresses, size_t *count, uint64_t address)
{
    if (!address)
        return 0;
    addresses[*count] = address;
    return (uint32_t)(*count)++;
}

/* Applies events as a chunk of their own, in which each address has an ordinal of its own. */
static enum ttd_status apply(struct range_replay *state, size_t count)
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
            range_add_address(state->addresses, &address_count, event->address);
        event->base_ordinal =
            range_add_address(state->addresses, &address_count, event->base_address);
    }
    struct ttd_batch batch = {.kind = TTD_KIND_EVENTS,
                              .count = count,
                              .chunk = {.offset = state->batches++},
                              .u.events = state->events,
                              .addresses = state->addresses,
                              .address_count = address_count};
    return heap_replay_apply(&state->replay, &batch, ttd_position_max(), &applied);
}

static enum ttd_status see_events(struct range_replay *state, const struct ttd_batch *batch)
{
    size_t count = 0;
    const struct ttd_event *end = batch->u.events + batch->count;
    for (const struct ttd_event *event = batch->u.events; event < end; event++) {
        if (!is_relevant(state, event, end))
            continue;
        enum ttd_status status =
            grow_array((void **)&state->events, &state->capacity, count + 1, sizeof *state->events);
        if (status != TTD_OK)
            return status;
        state->events[count++] = *event;
    }
    return count ? apply(state, count) : TTD_OK;
}

/* Starts at the keyframe of the route. All its blocks become live: those outside of the range do no
 * harm, since the replay is right for each address by itself. */
static enum ttd_status start_at_keyframe(struct range_replay *state, const struct heap_trace *trace,
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

static enum ttd_status range_see_batch(struct range_replay *state, const struct heap_trace *trace,
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
    return status == TTD_OK && has_events ? see_events(state, batch) : status;
}

static enum ttd_status range_read_part(struct range_replay *state, const struct heap_trace *trace,
                                       struct heap_prefetcher *prefetcher, struct ttd_error *error)
{
    enum ttd_status status = ttd_reader_rewind(trace->reader, HEAP_CURSOR_KINDS);
    if (status == TTD_OK && state->route->start)
        status = start_at_keyframe(state, trace, error);
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = heap_prefetcher_next(prefetcher, &batch, error);
        bool is_behind = status == TTD_OK && batch.kind == TTD_KIND_EVENTS &&
                         batch.u.events[0].number >= state->route->end;
        if (status == TTD_END || is_behind)
            return heap_replay_settle(&state->replay, ttd_position_max());
        if (status != TTD_OK)
            return heap_is_over(status) ? TTD_ERROR_CORRUPT : status;
        status = range_see_batch(state, trace, &batch);
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
        status = range_read_part(&state, trace, &prefetcher, error);
    heap_prefetcher_free(&prefetcher);
    heap_replay_free(&state.replay);
    free(state.events);
    free(state.addresses);
    return status == TTD_END ? TTD_OK : status;
}
