/* SPDX-License-Identifier: MIT */
/* Telling the observer of a replay. */
#include "heap/replay_parts.h"

static ttd_status tell(heap_replay *replay, const heap_effect *effect)
{
    if (replay->observer_status == TTD_OK)
        replay->observer_status = replay->observer.effect(replay->observer.context, effect);
    return replay->observer_status;
}

ttd_status heap_tell_call(heap_replay *replay, const ttd_event *event)
{
    if (replay->observer_status == TTD_OK)
        replay->observer_status = replay->observer.call(replay->observer.context, event);
    return replay->observer_status;
}

/* An effect that a call has at its beginning. */
static heap_effect effect_of(heap_effect_kind kind, const ttd_event *event)
{
    return (heap_effect){.kind = kind,
                         .position = event->time_start,
                         .event = event->number,
                         .action = event->action,
                         .api = event->api,
                         .stack = event->stack,
                         .thread = event->thread,
                         .heap = event->heap,
                         .is_unfinished = !ttd_event_returned(event)};
}

ttd_status heap_tell_acquired(heap_replay *replay, heap_block *block, heap_block *replaced,
                              const heap_pending *item)
{
    heap_effect effect = {.kind = HEAP_OVERLAPPED,
                          .position = block->allocated,
                          .event = block->event,
                          .action = block->action,
                          .api = block->api,
                          .stack = block->stack,
                          .thread = block->thread,
                          .heap = block->heap,
                          .address = block->address,
                          .block = replaced};
    ttd_status status = TTD_OK;
    if (replaced && heap_is_wanted(replay, HEAP_OVERLAPPED))
        status = tell(replay, &effect);
    if (status != TTD_OK || !heap_is_wanted(replay, HEAP_ACQUIRED))
        return status;
    effect.kind = HEAP_ACQUIRED;
    effect.block = block;
    effect.previous_address = item ? item->previous_address : 0;
    effect.previous = item && item->has_previous ? &item->previous : NULL;
    return tell(replay, &effect);
}

ttd_status heap_tell_released(heap_replay *replay, const ttd_event *event, heap_block *block,
                              bool continues)
{
    heap_effect effect = effect_of(block ? HEAP_RELEASED : HEAP_UNKNOWN_RELEASE, event);
    effect.address = event->base_address;
    effect.block = block;
    effect.continues = continues;
    return tell(replay, &effect);
}

ttd_status heap_tell_destroyed(heap_replay *replay, const ttd_event *event, uint64_t count)
{
    heap_effect effect = effect_of(HEAP_DESTROYED, event);
    effect.count = count;
    return tell(replay, &effect);
}

static ttd_status keep_discarded(heap_replay *replay, const heap_block *block, ttd_position end)
{
    if (!heap_was_at_peak(replay, block, end))
        return TTD_OK;
    return heap_copies_add(&replay->ended_since_peak, block,
                           (uint32_t)(block - replay->live.blocks));
}

void heap_discard(void *context, const heap_block *block, ttd_position end)
{
    heap_replay *replay = context;
    heap_block copy = *block;
    if (replay->observer_status == TTD_OK)
        replay->observer_status = keep_discarded(replay, block, end);
    if (!heap_is_wanted(replay, HEAP_DISCARDED))
        return;
    heap_effect effect = {.kind = HEAP_DISCARDED,
                          .position = end,
                          .address = block->address,
                          .block = &copy,
                          .action = TTD_ACTION_DESTROY};
    (void)tell(replay, &effect);
}
