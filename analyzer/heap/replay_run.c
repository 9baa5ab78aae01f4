/* SPDX-License-Identifier: MIT */
/*
 * The fast path of a replay that nobody watches: it takes most events of most traces. The sums of
 * live blocks are local variables meanwhile, which the compiler keeps in registers.
 */
#include "heap/replay_parts.h"

/* Sums are below 2^64 in a run: larger ones take the general path. */
struct run {
    struct heap_replay *replay;
    /** Bytes and number of the live blocks, and bytes of the peak. */
    uint64_t bytes;
    uint64_t peak;
    uint64_t count;
    /** Live blocks of heaps that have a parent: a run has none of them. */
    uint64_t nested;
    struct ttd_position position;
};

static inline struct run run_begin(struct heap_replay *replay)
{
    const struct heap_live *live = &replay->live;
    return (struct run){.replay = replay,
                        .bytes = live->bytes.low,
                        .peak = replay->peak.bytes.low,
                        .count = live->count,
                        .nested = live->count - live->outer_count,
                        .position = replay->position};
}

static inline void run_end(const struct run *state, struct heap_generation *generation)
{
    struct heap_live *live = &state->replay->live;
    generation->blocks += state->count - live->count;
    live->outer_count += state->count - live->count;
    heap_sum_add(&generation->bytes, state->bytes);
    heap_sum_take(&generation->bytes, live->bytes.low);
    live->bytes.low = state->bytes;
    live->count = state->count;
    state->replay->position = state->position;
}

/* The state at the previous position is complete here and may be the peak. */
static inline void run_move_to(struct run *state, struct ttd_position position)
{
    if (state->peak < state->bytes && ttd_position_compare(state->position, position) != 0) {
        state->replay->peak =
            (struct heap_peak){state->position, {0, state->bytes}, state->count - state->nested};
        state->peak = state->bytes;
    }
    state->position = position;
}

/* Applies an Alloc. False if it takes the general path, which acquires a block alike. */
static inline bool run_acquire(struct run *state, const struct ttd_event *event,
                               struct heap_block *blocks, const uint32_t *records)
{
    const struct heap_live *live = &state->replay->live;
    if (!event->address)
        return false;
    struct heap_block *stored = &blocks[records[event->address_ordinal]];
    if (!heap_live_is_free(live, stored, event->heap) || event->size > UINT64_MAX - state->bytes)
        return false;
    struct heap_block block = heap_block_of_event(event);
    run_move_to(state, event->time_end);
    heap_live_put(live, stored, &block);
    state->bytes += event->size;
    state->count++;
    return true;
}

/* Applies a Free. False if it takes the general path. */
static inline bool run_release(struct run *state, const struct ttd_event *event,
                               struct heap_block *blocks, const uint32_t *records)
{
    if (!event->base_address)
        return false;
    struct heap_block *block = &blocks[records[event->base_ordinal]];
    const struct heap_live *live = &state->replay->live;
    if (!block->is_held || block->generation != live->last_generation ||
        event->heap != live->last_heap)
        return false;
    run_move_to(state, event->time_start);
    block->is_held = false;
    state->bytes -= block->size;
    state->count--;
    return true;
}

const struct ttd_event *heap_replay_run(struct heap_replay *replay, const struct ttd_event *event,
                                        const struct ttd_event *end)
{
    struct heap_live *live = &replay->live;
    if (replay->queue.count || live->last_heap == HEAP_NO_HEAP || live->bytes.high ||
        replay->peak.bytes.high || live->generations[live->last_generation].is_nested)
        return event;
    struct heap_block *blocks = live->blocks;
    const uint32_t *records = replay->records.records;
    struct run state = run_begin(replay);
    const struct ttd_event *first = event;
    uint64_t acquired = 0;
    for (; event < end && event->result; event++) {
        heap_prefetch(event);
        if (event->action == TTD_ACTION_ALLOC) {
            if (!run_acquire(&state, event, blocks, records))
                break;
            acquired++;
        } else if (event->action != TTD_ACTION_FREE ||
                   !run_release(&state, event, blocks, records)) {
            break;
        }
    }
    uint64_t applied = (uint64_t)(event - first);
    replay->counts.events += applied;
    replay->counts.actions[TTD_ACTION_ALLOC] += acquired;
    replay->counts.actions[TTD_ACTION_FREE] += applied - acquired;
    run_end(&state, &live->generations[live->last_generation]);
    return event;
}
