/* SPDX-License-Identifier: MIT */
#include "base/grow.h"
#include "heap/replay_parts.h"

static enum ttd_status start(struct heap_replay *replay)
{
    enum ttd_status status = heap_live_init(&replay->live);
    if (status == TTD_OK && heap_is_wanted(replay, HEAP_DISCARDED)) {
        replay->live.discard = heap_discard;
        replay->live.discard_context = replay;
    }
    return status;
}

enum ttd_status heap_replay_init(struct heap_replay *replay, const struct heap_observer *observer)
{
    *replay = (struct heap_replay){0};
    heap_ordinal_map_init(&replay->entries);
    if (observer)
        replay->observer = *observer;
    if (replay->observer.effect)
        replay->wanted = ~observer->unwanted;
    return start(replay);
}

void heap_replay_free(struct heap_replay *replay)
{
    heap_live_free(&replay->live);
    heap_queue_free(&replay->queue);
    heap_ordinal_map_free(&replay->entries);
    heap_replay_drop_changes(replay);
    heap_block_copies_free(&replay->ended_since_peak);
}

enum ttd_status heap_replay_reset(struct heap_replay *replay)
{
    struct heap_observer observer = replay->observer;
    bool keeps_peak = replay->keeps_peak;
    heap_replay_free(replay);
    enum ttd_status status = heap_replay_init(replay, &observer);
    if (status == TTD_OK && keeps_peak)
        heap_replay_keep_peak(replay);
    return status;
}

/* Something happens at `position`: the state at the one before, with all that happened there, is
 * complete. */
static inline void move_to(struct heap_replay *replay, struct ttd_position position)
{
    if (heap_is_peak(replay) && ttd_position_compare(replay->position, position) != 0)
        heap_set_peak(replay);
    replay->position = position;
}

static inline void copy_block(struct heap_block *to, const struct heap_block *from)
{
    to->size = from->size;
    to->event = from->event;
    to->allocated = from->allocated;
    to->thread = from->thread;
    to->stack = from->stack;
    to->heap = from->heap;
    to->user = from->user;
    to->action = from->action;
    to->api = from->api;
}

/* A block ends at the position that the replay has moved to. */
static inline enum ttd_status keep_ended(struct heap_replay *replay, const struct heap_block *block,
                                         uint32_t record)
{
    enum ttd_status status = TTD_OK;
    if (block->event < replay->changes.since)
        status = heap_block_copies_add(&replay->changes.ended, block, record);
    if (status == TTD_OK && heap_was_at_peak(replay, block, replay->position))
        status = heap_block_copies_add(&replay->ended_since_peak, block, record);
    return status;
}

static inline enum ttd_status keep_born(struct heap_changes *changes, uint64_t event,
                                        uint32_t record)
{
    enum ttd_status status = TTD_OK;
    if (!changes->since)
        return TTD_OK;
    if (changes->born_count == changes->born_capacity)
        status = grow_array((void **)&changes->born, &changes->born_capacity,
                            changes->born_count + 1, sizeof *changes->born);
    if (status == TTD_OK)
        changes->born[changes->born_count++] = (struct heap_born){event, record};
    return status;
}

/* A block becomes live; `item` if it is that of a call in flight. */
static enum ttd_status acquire(struct heap_replay *replay, uint32_t entry,
                               const struct heap_block *block, const struct heap_pending *pending)
{
    struct heap_acquisition acquisition;
    move_to(replay, block->allocated);
    enum ttd_status status =
        heap_live_acquire(&replay->live, entry, block->heap, block->size, &acquisition);
    if (status != TTD_OK)
        return status;
    struct heap_block old;
    if (acquisition.replaced) {
        old = *acquisition.block;
        status = keep_ended(replay, &old, entry);
    }
    copy_block(acquisition.block, block);
    if (status == TTD_OK)
        status = keep_born(&replay->changes, block->event, entry);
    replay->counts.overlaps += acquisition.replaced;
    if (!replay->wanted || status != TTD_OK)
        return status;
    return heap_tell_acquired(replay, acquisition.block, acquisition.replaced ? &old : NULL,
                              pending);
}

/* Releases the block at the event's base address. */
static inline enum ttd_status release(struct heap_replay *replay, const struct ttd_event *event,
                                      uint32_t entry, bool continues, bool *known)
{
    move_to(replay, event->time_start);
    *known = heap_live_release(&replay->live, entry);
    enum ttd_status status = TTD_OK;
    if (*known)
        status = keep_ended(replay, &replay->live.blocks[entry], entry);
    else
        replay->counts.unknown_releases++;
    enum heap_effect_kind kind = *known ? HEAP_RELEASED : HEAP_UNKNOWN_RELEASE;
    if (!heap_is_wanted(replay, kind) || status != TTD_OK)
        return status;
    return heap_tell_released(replay, event, *known ? &replay->live.blocks[entry] : NULL,
                              continues);
}

/* Behind the last event that is known, and up to where events are to be applied. */
struct range {
    const struct ttd_event *end;
    struct ttd_position until;
};

/* The entries of what a call refers to. */
static inline uint32_t base_entry(const struct heap_replay *replay, const struct ttd_event *event)
{
    return heap_ordinal_map_get(&replay->entries, event->base_ordinal);
}

static inline uint32_t address_entry(const struct heap_replay *replay,
                                     const struct ttd_event *event)
{
    return heap_ordinal_map_get(&replay->entries, event->address_ordinal);
}

static inline enum ttd_status apply_alloc(struct heap_replay *replay, const struct ttd_event *event)
{
    if (!event->result || !event->address)
        return TTD_OK;
    uint32_t entry = address_entry(replay, event);
    move_to(replay, event->time_end);
    struct heap_block *quick =
        heap_live_acquire_quickly(&replay->live, entry, event->heap, event->size);
    if (quick) {
        heap_set_block(quick, event);
        enum ttd_status status = keep_born(&replay->changes, event->number, entry);
        if (status != TTD_OK || !heap_is_wanted(replay, HEAP_ACQUIRED))
            return status;
        return heap_tell_acquired(replay, quick, NULL, NULL);
    }
    struct heap_block block = {.address = event->address};
    heap_set_block(&block, event);
    return acquire(replay, entry, &block, NULL);
}

static inline enum ttd_status apply_free(struct heap_replay *replay, const struct ttd_event *event)
{
    if (!event->base_address || (!event->result && ttd_event_returned(event)))
        return TTD_OK;
    bool known;
    return release(replay, event, base_entry(replay, event), false, &known);
}

/* Whether the acquisition of a ReAlloc comes before anything else can happen. */
static inline bool is_alone(const struct heap_replay *replay, const struct ttd_event *event,
                            struct range in)
{
    return event + 1 < in.end && !replay->queue.count &&
           ttd_position_compare(event->time_end, in.until) <= 0 &&
           ttd_position_compare(event->time_end, ttd_event_position(event + 1)) <= 0;
}

static enum ttd_status apply_realloc(struct heap_replay *replay, const struct ttd_event *event,
                                     struct range in)
{
    if (!event->result)
        return TTD_OK;
    struct heap_pending pending;
    pending.previous_address = event->base_address;
    pending.has_previous = false;
    if (event->base_address) {
        enum ttd_status status = release(replay, event, base_entry(replay, event), event->address,
                                         &pending.has_previous);
        if (status != TTD_OK)
            return status;
        pending.has_previous = pending.has_previous && heap_is_wanted(replay, HEAP_ACQUIRED);
    }
    if (!event->address)
        return TTD_OK;
    pending.block.address = event->address;
    heap_set_block(&pending.block, event);
    if (pending.has_previous) {
        pending.previous = replay->live.blocks[base_entry(replay, event)];
        pending.block.user = pending.previous.user;
    }
    if (is_alone(replay, event, in))
        return acquire(replay, address_entry(replay, event), &pending.block, &pending);
    return heap_queue_push(&replay->queue, &pending);
}

static enum ttd_status apply_destroy(struct heap_replay *replay, const struct ttd_event *event)
{
    if (!event->result && ttd_event_returned(event))
        return TTD_OK;
    move_to(replay, event->time_start);
    uint64_t count = heap_live_destroy(&replay->live, event->heap, event->time_start);
    return heap_is_wanted(replay, HEAP_DESTROYED) ? heap_tell_destroyed(replay, event, count)
                                                  : TTD_OK;
}

static inline void count_event(struct heap_counts *counts, const struct ttd_event *event)
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
                                          struct range in)
{
    if (replay->observer.call) {
        enum ttd_status status = heap_tell_call(replay, event);
        if (status != TTD_OK)
            return status;
    }
    count_event(&replay->counts, event);
    switch (event->action) {
    case TTD_ACTION_ALLOC:
        return apply_alloc(replay, event);
    case TTD_ACTION_FREE:
        return apply_free(replay, event);
    case TTD_ACTION_REALLOC:
        return apply_realloc(replay, event, in);
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
        uint32_t entry;
        uint32_t hash = heap_live_hash(&replay->live, pending.block.address);
        status = heap_live_entry(&replay->live, pending.block.address, hash, &entry);
        if (status == TTD_OK)
            status = acquire(replay, entry, &pending.block, &pending);
    }
    return status;
}

/* ---- Applying ---- */

/* How many of the events are not after `until`. */
static size_t count_until(const struct ttd_event *events, size_t count, struct ttd_position until)
{
    while (count && ttd_position_compare(ttd_event_position(&events[count - 1]), until) > 0)
        count--;
    return count;
}

static enum ttd_status apply_events(struct heap_replay *replay, const struct ttd_event *events,
                                    size_t count, struct range in)
{
    bool has_runs = heap_has_runs(replay);
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
            status = apply_event(replay, event, in);
    }
    return status;
}

enum ttd_status heap_replay_apply(struct heap_replay *replay, const struct ttd_batch *batch,
                                  struct ttd_position until, size_t *applied)
{
    const struct ttd_event *events = batch->u.events;
    size_t count = count_until(events, batch->count, until);
    heap_ordinal_map_begin(&replay->entries, &replay->live, batch->chunk.offset);
    enum ttd_status status = heap_ordinal_map_add(&replay->entries, &replay->live, batch);
    if (status == TTD_OK)
        status = apply_events(replay, events, count, (struct range){events + batch->count, until});
    if (status != TTD_OK)
        return status;
    if (count)
        replay->next = events[count - 1].number + 1;
    *applied = count;
    return TTD_OK;
}
