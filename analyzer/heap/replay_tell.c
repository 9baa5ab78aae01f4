/* SPDX-License-Identifier: MIT */
/* Telling the observer of a replay. */
#include "heap/replay_parts.h"

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

/* An effect that a call has at its beginning. */
static struct heap_effect effect_of(const struct heap_replay *replay, enum heap_effect_kind kind,
                                    const struct ttd_event *event)
{
    return (struct heap_effect){.kind = kind,
                                .action = event->action,
                                .api = event->api,
                                .is_unfinished = !ttd_event_returned(event),
                                .position = event->time_start,
                                .event = event->number,
                                .stack = event->stack,
                                .thread = event->thread,
                                .heap = event->heap,
                                .wall_time = replay->wall_time};
}

static uint32_t record_of(const struct heap_replay *replay, const struct heap_block *block)
{
    return (uint32_t)(block - replay->live.blocks);
}

enum ttd_status heap_tell_acquired(struct heap_replay *replay, struct heap_block *block,
                                   struct heap_block *replaced, const struct heap_pending *pending)
{
    struct heap_effect effect = {.kind = HEAP_OVERLAPPED,
                                 .action = block->action,
                                 .api = block->api,
                                 .position = block->allocated,
                                 .event = block->event,
                                 .stack = block->stack,
                                 .thread = block->thread,
                                 .heap = block->heap,
                                 .record = record_of(replay, block),
                                 .wall_time = replay->wall_time,
                                 .address = block->address,
                                 .block = replaced};
    enum ttd_status status = TTD_OK;
    if (replaced && heap_is_wanted(replay, HEAP_OVERLAPPED))
        status = tell(replay, &effect);
    if (status != TTD_OK || !heap_is_wanted(replay, HEAP_ACQUIRED))
        return status;
    effect.kind = HEAP_ACQUIRED;
    effect.block = block;
    effect.previous_address = pending ? pending->previous_address : 0;
    effect.previous = pending && pending->has_previous ? &pending->previous : NULL;
    return tell(replay, &effect);
}

enum ttd_status heap_tell_released(struct heap_replay *replay, const struct ttd_event *event,
                                   struct heap_block *block, bool continues)
{
    struct heap_effect effect =
        effect_of(replay, block ? HEAP_RELEASED : HEAP_UNKNOWN_RELEASE, event);
    effect.address = event->base_address;
    effect.block = block;
    effect.record = block ? record_of(replay, block) : HEAP_NO_RECORD;
    effect.continues = continues;
    return tell(replay, &effect);
}

enum ttd_status heap_tell_destroyed(struct heap_replay *replay, const struct ttd_event *event,
                                    uint64_t count)
{
    struct heap_effect effect = effect_of(replay, HEAP_DESTROYED, event);
    effect.count = count;
    return tell(replay, &effect);
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
    struct heap_effect effect = {.kind = HEAP_DISCARDED,
                                 .action = TTD_ACTION_DESTROY,
                                 .position = end,
                                 .record = record_of(replay, block),
                                 .wall_time = replay->wall_time,
                                 .address = block->address,
                                 .block = &copy};
    (void)tell(replay, &effect);
}
