/* SPDX-License-Identifier: MIT */
#include "heap/replay_parts.h"

#include <stdlib.h>

#include "base/grow.h"
#include "heap/replay.h"

void heap_block_copies_free(struct heap_block_copies *copies)
{
    free(copies->blocks);
    free(copies->records);
    *copies = (struct heap_block_copies){.count = 0};
}

enum ttd_status heap_block_copies_grow(struct heap_block_copies *copies)
{
    /* Only when both have more room is there more. */
    size_t for_blocks = copies->capacity;
    size_t for_records = copies->capacity;
    enum ttd_status status = grow_array((void **)&copies->blocks, &for_blocks, copies->count + 1,
                                        sizeof *copies->blocks);
    if (status == TTD_OK)
        status = grow_array((void **)&copies->records, &for_records, copies->count + 1,
                            sizeof *copies->records);
    if (status == TTD_OK)
        copies->capacity = for_records;
    return status;
}

/* The peak, which a replay keeps beside the state. */

static struct heap_peak peak_of(const struct heap_replay *replay)
{
    return (struct heap_peak){replay->position, replay->live.bytes, replay->live.outer_count};
}

void heap_set_peak(struct heap_replay *replay)
{
    replay->peak = peak_of(replay);
    replay->ended_since_peak.count = 0;
}

struct heap_peak heap_replay_peak(const struct heap_replay *replay)
{
    return heap_is_peak(replay) ? peak_of(replay) : replay->peak;
}

void heap_replay_keep_peak(struct heap_replay *replay)
{
    replay->keeps_peak = true;
    replay->live.discard = heap_discard;
    replay->live.discard_context = replay;
}

enum ttd_status heap_replay_end_peak(struct heap_replay *replay)
{
    if (heap_is_peak(replay))
        heap_set_peak(replay);
    heap_live_discard_stale(&replay->live);
    return replay->observer_status;
}

/* Telling the observer of a replay. */

static enum ttd_status tell(struct heap_replay *replay, const struct heap_effect *effect)
{
    if (replay->observer_status == TTD_OK)
        replay->observer_status = replay->observer.effect(replay->observer.context, effect);
    return replay->observer_status;
}

enum ttd_status heap_tell_call(struct heap_replay *replay, const struct ttd_event *event)
{
    if (replay->observer_status == TTD_OK)
        replay->observer_status = replay->observer.call(replay->observer.context, event);
    return replay->observer_status;
}

/* Where the next effect is built; `here` if that does not matter. */
static struct heap_effect *effect_place(const struct heap_replay *replay, struct heap_effect *here)
{
    return replay->observer.place ? *replay->observer.place : here;
}

static uint32_t record_of(const struct heap_replay *replay, const struct heap_block *block)
{
    return (uint32_t)(block - replay->live.blocks);
}

/* Member by member, since gcc clears a whole struct with an instruction that takes long to begin.
 */
static inline void effect_build(struct heap_effect *effect, const struct heap_replay *replay,
                                enum heap_effect_kind kind, struct heap_block *block)
{
    effect->kind = kind;
    effect->continues = false;
    effect->is_unfinished = false;
    effect->record = block ? record_of(replay, block) : HEAP_NO_RECORD;
    effect->wall_time = replay->wall_time;
    effect->block = block;
    effect->previous_address = 0;
    effect->previous = NULL;
    effect->count = 0;
}

/* An effect that a call has at its beginning. */
static inline void build_of_call(struct heap_effect *effect, const struct heap_replay *replay,
                                 enum heap_effect_kind kind, const struct ttd_event *event,
                                 struct heap_block *block)
{
    effect_build(effect, replay, kind, block);
    effect->action = event->action;
    effect->api = event->api;
    effect->is_unfinished = !ttd_event_returned(event);
    effect->position = event->time_start;
    effect->event = event->number;
    effect->stack = event->stack;
    effect->thread = event->thread;
    effect->heap = event->heap;
    effect->address = event->base_address;
}

/* An effect of the call that acquires a block. */
static inline void build_of_block(struct heap_effect *effect, const struct heap_replay *replay,
                                  enum heap_effect_kind kind, struct heap_block *block)
{
    effect_build(effect, replay, kind, block);
    effect->action = block->action;
    effect->api = block->api;
    effect->position = block->allocated;
    effect->event = block->event;
    effect->stack = block->stack;
    effect->thread = block->thread;
    effect->heap = block->heap;
    effect->address = block->address;
}

enum ttd_status heap_tell_acquired(struct heap_replay *replay, struct heap_block *block,
                                   struct heap_block *replaced, const struct heap_pending *pending)
{
    struct heap_effect here;
    enum ttd_status status = TTD_OK;
    if (replaced && heap_is_wanted(replay, HEAP_OVERLAPPED)) {
        struct heap_effect *effect = effect_place(replay, &here);
        build_of_block(effect, replay, HEAP_OVERLAPPED, block);
        effect->block = replaced;
        status = tell(replay, effect);
    }
    if (status != TTD_OK || !heap_is_wanted(replay, HEAP_ACQUIRED))
        return status;
    struct heap_effect *effect = effect_place(replay, &here);
    build_of_block(effect, replay, HEAP_ACQUIRED, block);
    if (pending) {
        effect->previous_address = pending->previous_address;
        effect->flags = pending->flags;
        effect->previous = pending->has_previous ? &pending->previous : NULL;
    }
    return tell(replay, effect);
}

enum ttd_status heap_tell_released(struct heap_replay *replay, const struct ttd_event *event,
                                   struct heap_block *block, bool continues)
{
    struct heap_effect here;
    struct heap_effect *effect = effect_place(replay, &here);
    build_of_call(effect, replay, block ? HEAP_RELEASED : HEAP_UNKNOWN_RELEASE, event, block);
    effect->continues = continues;
    return tell(replay, effect);
}

enum ttd_status heap_tell_destroyed(struct heap_replay *replay, const struct ttd_event *event,
                                    uint64_t count)
{
    struct heap_effect here;
    struct heap_effect *effect = effect_place(replay, &here);
    build_of_call(effect, replay, HEAP_DESTROYED, event, NULL);
    effect->count = count;
    return tell(replay, effect);
}

static enum ttd_status keep_discarded(struct heap_replay *replay, const struct heap_block *block,
                                      struct ttd_position end)
{
    if (!heap_was_at_peak(replay, block, end))
        return TTD_OK;
    return heap_block_copies_add(&replay->ended_since_peak, block, record_of(replay, block));
}

void heap_discard(void *context, const struct heap_block *block, struct ttd_position end)
{
    struct heap_replay *replay = context;
    struct heap_block copy = *block;
    if (replay->observer_status == TTD_OK)
        replay->observer_status = keep_discarded(replay, block, end);
    if (!heap_is_wanted(replay, HEAP_DISCARDED))
        return;
    struct heap_effect here;
    struct heap_effect *effect = effect_place(replay, &here);
    *effect = (struct heap_effect){.kind = HEAP_DISCARDED,
                                   .action = TTD_ACTION_DESTROY,
                                   .position = end,
                                   .record = record_of(replay, block),
                                   .wall_time = replay->wall_time,
                                   .address = block->address,
                                   .block = &copy};
    (void)tell(replay, effect);
}

static enum ttd_status replay_start(struct heap_replay *replay)
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
    heap_ordinal_map_init(&replay->records);
    if (observer)
        replay->observer = *observer;
    if (replay->observer.effect)
        replay->wanted_effects = ~observer->unwanted;
    if (replay->observer.call)
        replay->wanted_calls = ~observer->unwanted_calls;
    return replay_start(replay);
}

void heap_replay_observe_blocks(struct heap_replay *replay,
                                const struct heap_block_observer *observer)
{
    replay->block_observer = observer ? *observer : (struct heap_block_observer){.context = NULL};
}

void heap_replay_free(struct heap_replay *replay)
{
    heap_live_free(&replay->live);
    heap_queue_free(&replay->queue);
    heap_ordinal_map_free(&replay->records);
    heap_block_copies_free(&replay->ended_since_peak);
}

enum ttd_status heap_replay_reset(struct heap_replay *replay)
{
    struct heap_observer observer = replay->observer;
    struct heap_parents parents = replay->live.parents;
    bool keeps_peak = replay->keeps_peak;
    replay->live.parents = (struct heap_parents){.by_heap = {0}};
    heap_replay_free(replay);
    enum ttd_status status = heap_replay_init(replay, &observer);
    replay->live.parents = parents;
    if (status == TTD_OK && keeps_peak)
        heap_replay_keep_peak(replay);
    return status;
}
