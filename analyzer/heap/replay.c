/* SPDX-License-Identifier: MIT */
#include "heap/replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* No chunk has this number. */
#define NO_CHUNK UINT64_MAX

/* What the calls of a batch refer to. */
typedef struct entry_pair {
    uint32_t base;
    uint32_t address;
} entry_pair;

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
    *replay = (heap_replay){.entries = {.chunk = NO_CHUNK}};
    if (observer)
        replay->observer = *observer;
    return start(replay);
}

void heap_replay_free(heap_replay *replay)
{
    heap_live_free(&replay->live);
    heap_queue_free(&replay->queue);
    free(replay->entries.items);
    replay->entries.items = NULL;
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

/* What a successful Alloc or ReAlloc acquires: all of a record but what is the table's own. */
static inline void set_block(heap_block *block, const ttd_event *event)
{
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

static inline void copy_block(heap_block *to, const heap_block *from)
{
    to->size = from->size;
    to->event = from->event;
    to->allocated = from->allocated;
    to->stack = from->stack;
    to->heap = from->heap;
    to->thread = from->thread;
    to->user = from->user;
    to->api = from->api;
    to->action = from->action;
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

/* A block becomes live; `item` if it is that of a call in flight. */
static ttd_status acquire(heap_replay *replay, uint32_t entry, const heap_block *block,
                          const heap_pending *item)
{
    heap_acquisition acquisition;
    ttd_status status = heap_live_acquire(&replay->live, entry, block->heap, &acquisition);
    if (status != TTD_OK)
        return status;
    heap_block old;
    if (acquisition.replaced)
        old = *acquisition.block;
    copy_block(acquisition.block, block);
    replay->position = block->allocated;
    replay->counts.overlaps += acquisition.replaced;
    if (!is_observed(replay))
        return TTD_OK;
    return tell_acquired(replay, acquisition.block, acquisition.replaced ? &old : NULL, item);
}

/* Releases the block at the event's base address. */
static inline ttd_status release(heap_replay *replay, const ttd_event *event, uint32_t entry,
                                 bool continues, bool *known)
{
    replay->position = event->time_start;
    *known = heap_live_release(&replay->live, entry);
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
                          .block = *known ? &replay->live.blocks[entry] : NULL,
                          .continues = continues};
    return notify(replay, &effect);
}

static inline ttd_status apply_alloc(heap_replay *replay, const ttd_event *event,
                                     entry_pair entries)
{
    if (!event->result || !event->address || !ttd_event_returned(event))
        return TTD_OK;
    heap_block *quick = heap_live_acquire_quickly(&replay->live, entries.address, event->heap);
    if (quick) {
        set_block(quick, event);
        replay->position = event->time_end;
        return is_observed(replay) ? tell_acquired(replay, quick, NULL, NULL) : TTD_OK;
    }
    heap_block block = {.address = event->address};
    set_block(&block, event);
    return acquire(replay, entries.address, &block, NULL);
}

static inline ttd_status apply_free(heap_replay *replay, const ttd_event *event, entry_pair entries)
{
    if (!event->base_address || (!event->result && ttd_event_returned(event)))
        return TTD_OK;
    bool known;
    return release(replay, event, entries.base, false, &known);
}

/* `is_alone`: nothing can happen between its release and its acquisition. */
static ttd_status apply_realloc(heap_replay *replay, const ttd_event *event, entry_pair entries,
                                bool is_alone)
{
    if (!event->result || !ttd_event_returned(event))
        return TTD_OK;
    heap_pending item;
    item.previous_address = event->base_address;
    item.has_previous = false;
    if (event->base_address) {
        ttd_status status =
            release(replay, event, entries.base, event->address, &item.has_previous);
        if (status != TTD_OK)
            return status;
        item.has_previous = item.has_previous && is_observed(replay);
    }
    if (!event->address)
        return TTD_OK;
    item.block.address = event->address;
    set_block(&item.block, event);
    if (item.has_previous) {
        item.previous = replay->live.blocks[entries.base];
        item.block.user = item.previous.user;
    }
    if (is_alone)
        return acquire(replay, entries.address, &item.block, &item);
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

static inline ttd_status apply_event(heap_replay *replay, const ttd_event *event,
                                     entry_pair entries, bool is_alone)
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
        return apply_alloc(replay, event, entries);
    case TTD_ACTION_FREE:
        return apply_free(replay, event, entries);
    case TTD_ACTION_REALLOC:
        return apply_realloc(replay, event, entries, is_alone);
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
        uint32_t entry;
        status = heap_live_entry(&replay->live, item.block.address, &entry);
        if (status == TTD_OK)
            status = acquire(replay, entry, &item.block, &item);
    }
    return status;
}

/* ---- Looking up ---- */

/* Ordinals and entries are good until the next chunk, or the next sweep. */
static void enter_chunk(heap_replay *replay, uint64_t chunk)
{
    bool is_littered = heap_live_is_littered(&replay->live);
    if (is_littered)
        heap_live_sweep(&replay->live);
    if (is_littered || replay->entries.chunk != chunk)
        replay->entries.count = 0;
    replay->entries.chunk = chunk;
}

static inline bool has_entry(const heap_entries *entries, uint32_t ordinal)
{
    return ordinal < entries->count && entries->items[ordinal] != HEAP_NO_ENTRY;
}

static ttd_status add_entry(heap_replay *replay, uint32_t ordinal, uint64_t address,
                            uint32_t *entry)
{
    heap_entries *entries = &replay->entries;
    ttd_status status = TTD_OK;
    if (ordinal >= entries->capacity)
        status = grow_array((void **)&entries->items, &entries->capacity, (size_t)ordinal + 1,
                            sizeof *entries->items);
    if (status == TTD_OK)
        status = heap_live_entry(&replay->live, address, entry);
    if (status != TTD_OK)
        return status;
    for (; entries->count < ordinal; entries->count++)
        entries->items[entries->count] = HEAP_NO_ENTRY;
    entries->count += entries->count == ordinal;
    entries->items[ordinal] = *entry;
    return TTD_OK;
}

static inline ttd_status find_entry(heap_replay *replay, uint32_t ordinal, uint64_t address,
                                    uint32_t *entry)
{
    if (!has_entry(&replay->entries, ordinal))
        return add_entry(replay, ordinal, address, entry);
    *entry = replay->entries.items[ordinal];
    return TTD_OK;
}

/* The addresses of a batch that have no entry yet. Ends with room for one more. */
static inline size_t list_unknown(const heap_entries *entries, const ttd_event *events,
                                  size_t count, uint64_t *addresses)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        addresses[n] = events[i].base_address;
        n += addresses[n] && !has_entry(entries, events[i].base_ordinal);
        addresses[n] = events[i].address;
        n += addresses[n] && !has_entry(entries, events[i].address_ordinal);
    }
    return n;
}

/*
 * Finds the entries of all addresses of a batch: which they are does not depend on what happens to
 * them. From far memory come first the slots of those to be looked up, then the records. (A
 * function that did nothing else would be removed by gcc, as one without effect.)
 */
static ttd_status look_up(heap_replay *replay, const ttd_event *events, size_t count,
                          entry_pair *entries)
{
    uint64_t addresses[2 * HEAP_REPLAY_BATCH + 1];
    size_t unknown = list_unknown(&replay->entries, events, count, addresses);
    for (size_t i = 0; i < unknown; i++)
        heap_live_prefetch(&replay->live, addresses[i]);
    for (size_t i = 0; i < unknown; i++)
        heap_live_prefetch_record(&replay->live, addresses[i]);
    ttd_status status = TTD_OK;
    for (size_t i = 0; i < count && status == TTD_OK; i++) {
        const ttd_event *event = &events[i];
        if (event->base_address)
            status = find_entry(replay, event->base_ordinal, event->base_address, &entries[i].base);
        if (event->address && status == TTD_OK)
            status =
                find_entry(replay, event->address_ordinal, event->address, &entries[i].address);
    }
    return status;
}

/* ---- Applying ---- */

/* Whether the acquisition of a ReAlloc comes before anything else can happen. */
static inline bool is_alone(const heap_replay *replay, const ttd_event *event,
                            const ttd_event *next, ttd_position until)
{
    return next && !replay->queue.count && ttd_position_compare(event->time_end, until) <= 0 &&
           ttd_position_compare(event->time_end, ttd_event_position(next)) <= 0;
}

static ttd_status apply_batch(heap_replay *replay, const ttd_event *events, size_t count,
                              ttd_position until, size_t *applied)
{
    entry_pair entries[HEAP_REPLAY_BATCH];
    bool is_bounded = ttd_position_compare(until, ttd_position_max()) < 0;
    ttd_status status = look_up(replay, events, count, entries);
    size_t i = 0;
    for (; i < count && status == TTD_OK; i++) {
        const ttd_event *event = &events[i];
        bool alone = false;
        if (is_bounded && ttd_position_compare(ttd_event_position(event), until) > 0)
            break;
        if (replay->queue.count)
            status = heap_replay_settle(replay, ttd_event_position(event));
        if (event->action == TTD_ACTION_REALLOC)
            alone = is_alone(replay, event, i + 1 < count ? event + 1 : NULL, until);
        if (status == TTD_OK)
            status = apply_event(replay, event, entries[i], alone);
    }
    *applied = i;
    return status;
}

ttd_status heap_replay_apply(heap_replay *replay, uint64_t chunk, const ttd_event *events,
                             size_t count, ttd_position until, size_t *applied)
{
    ttd_status status = TTD_OK;
    size_t done = 0;
    while (status == TTD_OK && done < count) {
        size_t wanted = count - done < HEAP_REPLAY_BATCH ? count - done : HEAP_REPLAY_BATCH;
        size_t got;
        enter_chunk(replay, chunk);
        status = apply_batch(replay, events + done, wanted, until, &got);
        done += got;
        if (got < wanted)
            break;
    }
    *applied = done;
    return status;
}
