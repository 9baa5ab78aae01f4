/* SPDX-License-Identifier: MIT */
/* Applying events to the state. */
#include "heap/replay_parts.h"

/* Moves to the position of an effect. The state at the position before is complete then, so that it
 * may be the peak. */
static inline void replay_move_to(struct heap_replay *replay, struct ttd_position position)
{
    if (heap_is_peak(replay) && ttd_position_compare(replay->position, position) != 0)
        heap_set_peak(replay);
    replay->position = position;
}

/* Reports a block that ends at the replay's position, and keeps a copy where one is wanted. */
static inline enum ttd_status apply_end_block(struct heap_replay *replay,
                                              const struct heap_block *block, uint32_t record)
{
    enum ttd_status status = TTD_OK;
    const struct heap_block_observer *observer = &replay->block_observer;
    if (observer->ended)
        status = observer->ended(observer->context, block, record);
    if (status == TTD_OK && heap_was_at_peak(replay, block, replay->position))
        status = heap_block_copies_add(&replay->ended_since_peak, block, record);
    return status;
}

/* Whether an acquired block is live where the replay ends, as the observer says. */
static inline bool replay_survives(const struct heap_replay *replay, const struct heap_block *block)
{
    return replay->observer.survives && replay->observer.survives(replay->observer.context, block);
}

/* Makes a block live. `record`: one of its address. `pending`: the call in flight that acquires it;
 * NULL for a call that has just been read. */
static inline enum ttd_status replay_acquire(struct heap_replay *replay, uint32_t record,
                                             const struct heap_block *block,
                                             const struct heap_pending *pending)
{
    struct heap_block old;
    replay_move_to(replay, block->allocated);
    if (!pending && heap_live_is_free(&replay->live, &replay->live.blocks[record], block->heap) &&
        replay_survives(replay, block))
        return TTD_OK;
    enum ttd_status status = heap_live_acquire(&replay->live, &record, block, &old);
    if (status != TTD_OK)
        return status;
    bool has_replaced = old.address;
    replay->counts.overlaps += has_replaced;
    if (has_replaced)
        status = apply_end_block(replay, &old, record);
    const struct heap_block_observer *observer = &replay->block_observer;
    if (observer->acquired && status == TTD_OK)
        status = observer->acquired(observer->context, block, record);
    if (!replay->wanted_effects || status != TTD_OK)
        return status;
    struct heap_block *stored = &replay->live.blocks[record];
    status = heap_tell_acquired(replay, stored, has_replaced ? &old : NULL, pending);
    if (status == TTD_OK && replay_survives(replay, stored))
        (void)heap_live_release(&replay->live, record);
    return status;
}

static inline uint32_t apply_address_record(const struct heap_replay *replay,
                                            const struct ttd_event *event)
{
    return heap_ordinal_map_get(&replay->records, event->address_ordinal);
}

/* Releases the block at the event's base address. `released`: set to its record; HEAP_NO_RECORD if
 * it is not known. */
static inline enum ttd_status replay_release(struct heap_replay *replay,
                                             const struct ttd_event *event, bool continues,
                                             uint32_t *released)
{
    replay_move_to(replay, event->time_start);
    uint32_t record = heap_live_own(
        &replay->live, heap_ordinal_map_get(&replay->records, event->base_ordinal), event->heap);
    bool is_known = record != HEAP_NO_RECORD && heap_live_release(&replay->live, record);
    replay->counts.unknown_releases += !is_known;
    *released = record;
    struct heap_block *block = is_known ? &replay->live.blocks[record] : NULL;
    enum ttd_status status = block ? apply_end_block(replay, block, record) : TTD_OK;
    enum heap_effect_kind kind = block ? HEAP_RELEASED : HEAP_UNKNOWN_RELEASE;
    if (!heap_is_wanted(replay, kind) || status != TTD_OK)
        return status;
    return heap_tell_released(replay, event, block, continues);
}

struct range {
    /** Behind the last event of the batch. */
    const struct ttd_event *end;
    /** Events up to and including this position are applied. */
    struct ttd_position until;
};

static inline enum ttd_status apply_alloc(struct heap_replay *replay, const struct ttd_event *event)
{
    if (!event->result || !event->address)
        return TTD_OK;
    struct heap_block block = heap_block_of_event(event);
    return replay_acquire(replay, apply_address_record(replay, event), &block, NULL);
}

static inline enum ttd_status apply_free(struct heap_replay *replay, const struct ttd_event *event)
{
    if (!event->base_address || (!event->result && ttd_event_returned(event)))
        return TTD_OK;
    uint32_t released;
    return replay_release(replay, event, false, &released);
}

/* Whether the acquisition of a ReAlloc comes before anything else can happen. */
static inline bool apply_is_alone_call(const struct heap_replay *replay,
                                       const struct ttd_event *event, struct range range)
{
    return event + 1 < range.end && !replay->queue.count &&
           ttd_position_compare(event->time_end, range.until) <= 0 &&
           ttd_position_compare(event->time_end, ttd_event_position(event + 1)) <= 0;
}

static enum ttd_status apply_realloc(struct heap_replay *replay, const struct ttd_event *event,
                                     struct range range)
{
    if (!event->result)
        return TTD_OK;
    struct heap_pending pending;
    pending.previous_address = event->base_address;
    pending.flags = event->flags;
    pending.has_previous = false;
    uint32_t released = HEAP_NO_RECORD;
    if (event->base_address) {
        enum ttd_status status = replay_release(replay, event, event->address, &released);
        if (status != TTD_OK)
            return status;
    }
    if (!event->address)
        return TTD_OK;
    pending.block = heap_block_of_event(event);
    bool is_alone = apply_is_alone_call(replay, event, range);
    /* A graph of the heap has blocks in flight, without an observer. */
    if (released != HEAP_NO_RECORD && (!is_alone || heap_is_wanted(replay, HEAP_ACQUIRED))) {
        pending.has_previous = true;
        pending.previous = replay->live.blocks[released];
        pending.block.user = pending.previous.user;
    }
    return is_alone ? replay_acquire(replay, apply_address_record(replay, event), &pending.block,
                                     &pending)
                    : heap_queue_push(&replay->queue, &pending);
}

static enum ttd_status apply_destroy(struct heap_replay *replay, const struct ttd_event *event)
{
    if (!event->result && ttd_event_returned(event))
        return TTD_OK;
    replay_move_to(replay, event->time_start);
    struct heap_sum bytes = replay->live.bytes;
    uint64_t count = heap_live_destroy(&replay->live, event->heap, event->time_start);
    /* No function of the program has done it. */
    if (event->thread == TTD_NONE && event->api == TTD_API_OTHER) {
        heap_sum_subtract(&bytes, replay->live.bytes);
        heap_sum_add_sum(&replay->left.bytes, bytes);
        replay->left.blocks += count;
        replay->left.acquisitions =
            replay->counts.actions[TTD_ACTION_ALLOC] + replay->counts.actions[TTD_ACTION_REALLOC];
    }
    return heap_is_wanted(replay, HEAP_DESTROYED) ? heap_tell_destroyed(replay, event, count)
                                                  : TTD_OK;
}

static inline void apply_count_event(struct heap_counts *counts, const struct ttd_event *event)
{
    counts->events++;
    counts->actions[event->action]++;
    if (event->result)
        return;
    if (ttd_event_returned(event))
        counts->failed++;
    else
        counts->unfinished++;
}

static inline enum ttd_status apply_event(struct heap_replay *replay, const struct ttd_event *event,
                                          struct range range)
{
    if (event->wall_time > replay->wall_time)
        replay->wall_time = event->wall_time;
    if (replay->wanted_calls & HEAP_CALL_BIT(event->action)) {
        enum ttd_status status = heap_tell_call(replay, event);
        if (status != TTD_OK)
            return status;
    }
    apply_count_event(&replay->counts, event);
    switch (event->action) {
    case TTD_ACTION_ALLOC:
        return apply_alloc(replay, event);
    case TTD_ACTION_FREE:
        return apply_free(replay, event);
    case TTD_ACTION_REALLOC:
        return apply_realloc(replay, event, range);
    case TTD_ACTION_DESTROY:
        return apply_destroy(replay, event);
    default:
        return TTD_OK;
    }
}

enum ttd_status heap_replay_settle(struct heap_replay *replay, struct ttd_position until)
{
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && heap_queue_due(&replay->queue, until)) {
        struct heap_pending pending;
        heap_queue_pop(&replay->queue, &pending);
        uint32_t record;
        uint32_t hash = heap_live_hash(&replay->live, pending.block.address);
        status = heap_live_record(&replay->live, pending.block.address, hash, &record);
        if (status == TTD_OK)
            status = replay_acquire(replay, record, &pending.block, &pending);
    }
    return status;
}

/* ---- Applying ---- */

/* Counts the events that are not after `until`. */
static size_t apply_count_until(const struct ttd_event *events, size_t count,
                                struct ttd_position until)
{
    while (count && ttd_position_compare(ttd_event_position(&events[count - 1]), until) > 0)
        count--;
    return count;
}

bool heap_replay_has_runs(const struct heap_replay *replay)
{
    bool is_watched = replay->wanted_effects ||
                      replay->wanted_calls & HEAP_CALL_BIT(TTD_ACTION_ALLOC) ||
                      replay->block_observer.acquired;
    const struct heap_plain_observer *plain = replay->observer.plain;
    return replay->observer.run || (plain && plain->acquired) || !is_watched;
}

static enum ttd_status apply_events(struct heap_replay *replay, const struct ttd_event *events,
                                    size_t count, struct range range)
{
    bool has_runs = heap_replay_has_runs(replay);
    enum ttd_status status = TTD_OK;
    for (const struct ttd_event *event = events; status == TTD_OK; event++) {
        if (has_runs)
            event = heap_replay_run(replay, event, events + count);
        if (event == events + count)
            break;
        heap_prefetch(event);
        if (replay->queue.count)
            status = heap_replay_settle(replay, ttd_event_position(event));
        if (status == TTD_OK)
            status = apply_event(replay, event, range);
    }
    return status;
}

enum ttd_status heap_replay_apply(struct heap_replay *replay, const struct ttd_batch *batch,
                                  struct ttd_position until, size_t *applied)
{
    const struct ttd_event *events = batch->u.events;
    size_t count = apply_count_until(events, batch->count, until);
    struct range range = {events + batch->count, until};
    heap_ordinal_map_begin(&replay->records, &replay->live, batch->chunk.offset);
    enum ttd_status status = heap_ordinal_map_add(&replay->records, &replay->live, batch);
    if (status == TTD_OK)
        status = apply_events(replay, events, count, range);
    if (status == TTD_OK && replay->observer.applied)
        status = replay->observer.applied(replay->observer.context);
    if (status != TTD_OK)
        return status;
    if (count)
        replay->next = events[count - 1].number + 1;
    *applied = count;
    return TTD_OK;
}

/*
 * The fast path of a replay whose effects nobody watches, or an observer of runs: it takes most
 * events of most traces. The sums of live blocks are local variables meanwhile: the compiler keeps
 * them in registers.
 */

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
    /** For an observer of runs. */
    bool has_observer;
    uint64_t wall_time;
    uint64_t acquired_bytes;
    uint64_t settled_bytes;
    uint64_t settled_blocks;
};

static inline struct run apply_run_begin(struct heap_replay *replay, bool has_observer)
{
    const struct heap_live *live = &replay->live;
    return (struct run){.replay = replay,
                        .has_observer = has_observer,
                        .wall_time = replay->wall_time,
                        .bytes = live->bytes.low,
                        .peak = has_observer ? 0 : replay->peak.bytes.low,
                        .count = live->count,
                        .nested = live->count - live->outer_count,
                        .position = replay->position};
}

static inline void apply_run_end(const struct run *state, struct heap_generation *generation)
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
static inline void apply_run_move_to(struct run *state, struct ttd_position position)
{
    if (state->peak < state->bytes && ttd_position_compare(state->position, position) != 0) {
        if (!state->has_observer) {
            state->replay->peak = (struct heap_peak){
                state->position, {0, state->bytes}, state->count - state->nested};
            state->replay->ended_since_peak.count = 0;
        }
        state->peak = state->bytes;
    }
    state->position = position;
    if (!state->has_observer)
        return;
    state->settled_bytes = state->bytes;
    state->settled_blocks = state->count;
}

/* Hands a call to the observer that gets plain ones. False if it fails: then it fails again on the
 * general path. */
static inline bool apply_run_tell_alloc(struct heap_replay *replay, const struct ttd_event *event)
{
    const struct heap_observer *observer = &replay->observer;
    enum ttd_status status = observer->plain->acquired(observer->context, event);
    if (status != TTD_OK)
        replay->observer_status = status;
    return status == TTD_OK;
}

static inline bool apply_run_tell_free(struct heap_replay *replay, const struct ttd_event *event,
                                       const struct heap_block *block)
{
    const struct heap_observer *observer = &replay->observer;
    if (!observer->plain)
        return heap_tell_call(replay, event) == TTD_OK;
    enum ttd_status status = observer->plain->released(observer->context, event, block);
    if (status != TTD_OK)
        replay->observer_status = status;
    return status == TTD_OK;
}

/* Applies an Alloc. False if it takes the general path, with the same effect on blocks, or if the
 * observer fails. */
static inline bool apply_run_acquire(struct run *state, const struct ttd_event *event,
                                     struct heap_block *blocks, const uint32_t *records,
                                     bool is_told)
{
    const struct heap_live *live = &state->replay->live;
    if (!event->address)
        return false;
    struct heap_block *stored = &blocks[records[event->address_ordinal]];
    if (!heap_live_is_free(live, stored, event->heap) || event->size > UINT64_MAX - state->bytes)
        return false;
    if (is_told && !apply_run_tell_alloc(state->replay, event))
        return false;
    struct heap_block block = heap_block_of_event(event);
    apply_run_move_to(state, event->time_end);
    heap_live_put(live, stored, &block);
    state->bytes += event->size;
    state->acquired_bytes += event->size;
    state->count++;
    return true;
}

/* Applies a Free. False if it takes the general path, as it does without memory for a copy, or if
 * the observer fails. */
static inline bool apply_run_release(struct run *state, const struct ttd_event *event,
                                     struct heap_block *blocks, const uint32_t *records,
                                     bool is_told)
{
    if (!event->base_address)
        return false;
    struct heap_block *block = &blocks[records[event->base_ordinal]];
    const struct heap_live *live = &state->replay->live;
    if (!block->is_held || block->generation != live->last_generation ||
        event->heap != live->last_heap)
        return false;
    if (is_told && !apply_run_tell_free(state->replay, event, block))
        return false;
    apply_run_move_to(state, event->time_start);
    if (heap_was_at_peak(state->replay, block, event->time_start) &&
        heap_block_copies_add(&state->replay->ended_since_peak, block,
                              records[event->base_ordinal]) != TTD_OK)
        return false;
    block->is_held = false;
    state->bytes -= block->size;
    state->count--;
    return true;
}

/* Whether an event can be part of a run that an observer gets. */
static inline bool apply_run_takes(struct run *state, const struct ttd_event *event)
{
    const struct heap_run_limits *limits = state->replay->observer.limits;
    bool is_alloc = event->action == TTD_ACTION_ALLOC;
    struct ttd_position position = is_alloc ? event->time_end : event->time_start;
    if (event->number >= limits->event || event->wall_time >= limits->wall_time ||
        ttd_position_compare(position, state->position) == 0 ||
        (is_alloc && event->size > UINT64_MAX - state->acquired_bytes))
        return false;
    if (event->wall_time > state->wall_time)
        state->wall_time = event->wall_time;
    return true;
}

/* Hands a run that is not empty to the observer. `before`: the bytes that were live at its
 * beginning. */
static void apply_run_tell(const struct run *state, uint64_t acquired, uint64_t released,
                           uint64_t before)
{
    struct heap_replay *replay = state->replay;
    const struct heap_run run = {.heap = (ttd_id)replay->live.last_heap,
                                 .acquired = acquired,
                                 .acquired_bytes = state->acquired_bytes,
                                 .released = released,
                                 .released_bytes = before + state->acquired_bytes - state->bytes,
                                 .position = state->position,
                                 .settled_blocks = state->settled_blocks - state->nested,
                                 .settled_bytes = state->settled_bytes,
                                 .peak_bytes = state->peak};
    replay->wall_time = state->wall_time;
    replay->observer.run(replay->observer.context, &run);
}

/* `has_observer` is a constant: this is compiled twice. */
static inline __attribute__((always_inline)) const struct ttd_event *
apply_run(struct heap_replay *replay, const struct ttd_event *event, const struct ttd_event *end,
          bool has_observer)
{
    struct heap_live *live = &replay->live;
    struct heap_block *blocks = live->blocks;
    const uint32_t *records = replay->records.records;
    struct run state = apply_run_begin(replay, has_observer);
    const struct ttd_event *first = event;
    uint64_t before = state.bytes;
    bool is_plain = replay->observer.plain;
    bool tells_alloc = is_plain && replay->observer.plain->acquired;
    bool tells_free = is_plain || replay->wanted_calls & HEAP_CALL_BIT(TTD_ACTION_FREE);
    uint64_t acquired = 0;
    for (; event < end && event->result; event++) {
        heap_prefetch(event);
        if (has_observer && !apply_run_takes(&state, event))
            break;
        if (event->action == TTD_ACTION_ALLOC) {
            if (!apply_run_acquire(&state, event, blocks, records, tells_alloc))
                break;
            acquired++;
        } else if (event->action != TTD_ACTION_FREE ||
                   !apply_run_release(&state, event, blocks, records, tells_free)) {
            break;
        }
    }
    uint64_t applied = (uint64_t)(event - first);
    replay->counts.events += applied;
    replay->counts.actions[TTD_ACTION_ALLOC] += acquired;
    replay->counts.actions[TTD_ACTION_FREE] += applied - acquired;
    apply_run_end(&state, &live->generations[live->last_generation]);
    if (has_observer && applied)
        apply_run_tell(&state, acquired, applied - acquired, before);
    return event;
}

const struct ttd_event *heap_replay_run(struct heap_replay *replay, const struct ttd_event *event,
                                        const struct ttd_event *end)
{
    const struct heap_live *live = &replay->live;
    if (replay->queue.count || live->last_heap == HEAP_NO_HEAP || live->bytes.high ||
        replay->peak.bytes.high || live->generations[live->last_generation].is_nested)
        return event;
    return replay->observer.run ? apply_run(replay, event, end, true)
                                : apply_run(replay, event, end, false);
}
