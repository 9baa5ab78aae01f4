/* SPDX-License-Identifier: MIT */
#include "heap/replay.h"

/* Events that are looked ahead at, to fetch their slots from memory. */
#define LOOK_AHEAD 64

static void discard(void *context, const heap_block *block)
{
    heap_replay *replay = context;
    heap_block copy = *block;
    heap_effect effect = {.kind = HEAP_DISCARDED,
                          .position = replay->position,
                          .address = block->address,
                          .block = &copy,
                          .action = TTD_ACTION_DESTROY};
    if (replay->observer_status == TTD_OK)
        replay->observer_status = replay->observer.effect(replay->observer.context, &effect);
}

static ttd_status start(heap_replay *replay)
{
    ttd_status status = heap_live_init(&replay->live);
    if (status == TTD_OK && replay->observer.effect) {
        replay->live.discard = discard;
        replay->live.discard_context = replay;
    }
    return status;
}

ttd_status heap_replay_init(heap_replay *replay, const heap_observer *observer)
{
    *replay = (heap_replay){0};
    if (observer)
        replay->observer = *observer;
    return start(replay);
}

void heap_replay_free(heap_replay *replay)
{
    heap_live_free(&replay->live);
    heap_queue_free(&replay->queue);
}

ttd_status heap_replay_reset(heap_replay *replay)
{
    heap_observer observer = replay->observer;
    heap_replay_free(replay);
    return heap_replay_init(replay, &observer);
}

static inline bool is_observed(const heap_replay *replay)
{
    return replay->observer.effect;
}

static ttd_status notify(heap_replay *replay, const heap_effect *effect)
{
    if (replay->observer_status == TTD_OK)
        replay->observer_status = replay->observer.effect(replay->observer.context, effect);
    return replay->observer_status;
}

/* The block that a successful Alloc or ReAlloc acquires. */
static inline void set_block(heap_block *block, const ttd_event *event)
{
    block->address = event->address;
    block->size = event->size;
    block->event = event->number;
    block->allocated = event->time_end;
    block->stack = event->stack;
    block->heap = event->heap;
    block->thread = event->thread;
    block->user = 0;
    block->api = event->api;
    block->action = event->action;
}

/* Tells of a block that was acquired, and before that of the one it replaced, if any. */
static ttd_status tell_acquired(heap_replay *replay, heap_block *block, heap_block *replaced,
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
    ttd_status status = replaced ? notify(replay, &effect) : TTD_OK;
    effect.kind = HEAP_ACQUIRED;
    effect.block = block;
    effect.previous_address = item ? item->previous_address : 0;
    effect.previous = item && item->has_previous ? &item->previous : NULL;
    return status == TTD_OK ? notify(replay, &effect) : status;
}

/* What is in flight becomes live. */
static ttd_status acquire(heap_replay *replay, const heap_pending *item)
{
    heap_insertion insertion;
    ttd_status status =
        heap_live_insert(&replay->live, item->block.address, item->block.heap, &insertion);
    if (status != TTD_OK)
        return status;
    heap_block old;
    if (insertion.replaced)
        old = *insertion.block;
    *insertion.block = item->block;
    replay->position = item->block.allocated;
    replay->counts.overlaps += insertion.replaced;
    if (!is_observed(replay))
        return TTD_OK;
    return tell_acquired(replay, insertion.block, insertion.replaced ? &old : NULL, item);
}

/* Releases the block at the event's base address; `old` is set if there is one and it is wanted. */
static ttd_status release(heap_replay *replay, const ttd_event *event, bool continues, bool *known,
                          heap_block *old)
{
    replay->position = event->time_start;
    *known = heap_live_remove(&replay->live, event->base_address, old);
    if (!*known)
        replay->counts.unknown_releases++;
    if (!is_observed(replay))
        return TTD_OK;
    heap_effect effect = {.kind = *known ? HEAP_RELEASED : HEAP_UNKNOWN_RELEASE,
                          .position = event->time_start,
                          .event = event->number,
                          .action = event->action,
                          .api = event->api,
                          .stack = event->stack,
                          .thread = event->thread,
                          .heap = event->heap,
                          .address = event->base_address,
                          .block = *known ? old : NULL,
                          .continues = continues};
    return notify(replay, &effect);
}

static ttd_status apply_alloc(heap_replay *replay, const ttd_event *event)
{
    if (!event->result || !event->address || !ttd_event_returned(event))
        return TTD_OK;
    heap_insertion insertion;
    ttd_status status = heap_live_insert(&replay->live, event->address, event->heap, &insertion);
    if (status != TTD_OK)
        return status;
    replay->position = event->time_end;
    replay->counts.overlaps += insertion.replaced;
    if (!is_observed(replay)) {
        set_block(insertion.block, event);
        return TTD_OK;
    }
    heap_block old;
    if (insertion.replaced)
        old = *insertion.block;
    set_block(insertion.block, event);
    return tell_acquired(replay, insertion.block, insertion.replaced ? &old : NULL, NULL);
}

static ttd_status apply_free(heap_replay *replay, const ttd_event *event)
{
    if (!event->base_address || (!event->result && ttd_event_returned(event)))
        return TTD_OK;
    bool known;
    heap_block old;
    return release(replay, event, false, &known, is_observed(replay) ? &old : NULL);
}

static ttd_status apply_realloc(heap_replay *replay, const ttd_event *event)
{
    if (!event->result || !ttd_event_returned(event))
        return TTD_OK;
    heap_pending item;
    item.previous_address = event->base_address;
    item.has_previous = false;
    if (event->base_address) {
        ttd_status status = release(replay, event, event->address, &item.has_previous,
                                    is_observed(replay) ? &item.previous : NULL);
        if (status != TTD_OK)
            return status;
        item.has_previous = item.has_previous && is_observed(replay);
    }
    if (!event->address)
        return TTD_OK;
    set_block(&item.block, event);
    if (item.has_previous)
        item.block.user = item.previous.user;
    return heap_queue_push(&replay->queue, &item);
}

static ttd_status apply_destroy(heap_replay *replay, const ttd_event *event)
{
    if (!event->result && ttd_event_returned(event))
        return TTD_OK;
    replay->position = event->time_start;
    uint64_t count = heap_live_destroy(&replay->live, event->heap);
    if (!is_observed(replay))
        return TTD_OK;
    heap_effect effect = {.kind = HEAP_DESTROYED,
                          .position = event->time_start,
                          .event = event->number,
                          .action = event->action,
                          .api = event->api,
                          .stack = event->stack,
                          .thread = event->thread,
                          .heap = event->heap,
                          .count = count};
    return notify(replay, &effect);
}

static ttd_status apply_event(heap_replay *replay, const ttd_event *event)
{
    heap_counts *counts = &replay->counts;
    if (replay->observer.call && replay->observer_status == TTD_OK)
        replay->observer_status = replay->observer.call(replay->observer.context, event);
    if (replay->observer_status != TTD_OK)
        return replay->observer_status;
    counts->events++;
    counts->actions[event->action <= TTD_ACTION_DESTROY ? event->action : 0]++;
    if (!ttd_event_returned(event))
        counts->unfinished++;
    else if (!event->result)
        counts->failed++;
    switch (event->action) {
    case TTD_ACTION_ALLOC:
        return apply_alloc(replay, event);
    case TTD_ACTION_FREE:
        return apply_free(replay, event);
    case TTD_ACTION_REALLOC:
        return apply_realloc(replay, event);
    case TTD_ACTION_DESTROY:
        return apply_destroy(replay, event);
    default:
        return TTD_OK;
    }
}

ttd_status heap_replay_settle(heap_replay *replay, ttd_position until)
{
    ttd_status status = TTD_OK;
    while (status == TTD_OK && heap_queue_due(&replay->queue, until)) {
        heap_pending item;
        heap_queue_pop(&replay->queue, &item);
        status = acquire(replay, &item);
    }
    return status;
}

static void prefetch(const heap_replay *replay, const ttd_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool releases = events[i].action == TTD_ACTION_FREE;
        heap_live_prefetch(&replay->live, releases ? events[i].base_address : events[i].address);
    }
}

ttd_status heap_replay_apply(heap_replay *replay, const ttd_event *events, size_t count,
                             ttd_position until, size_t *applied)
{
    bool is_bounded = ttd_position_compare(until, ttd_position_max()) < 0;
    for (size_t i = 0; i < count; i++) {
        if (i % LOOK_AHEAD == 0)
            prefetch(replay, events + i, count - i < LOOK_AHEAD ? count - i : LOOK_AHEAD);
        ttd_status status = TTD_OK;
        if (is_bounded || replay->queue.count) {
            ttd_position position = ttd_event_position(&events[i]);
            if (ttd_position_compare(position, until) > 0) {
                *applied = i;
                return TTD_OK;
            }
            status = heap_replay_settle(replay, position);
        }
        if (status == TTD_OK)
            status = apply_event(replay, &events[i]);
        if (status != TTD_OK)
            return status;
    }
    *applied = count;
    return TTD_OK;
}
