/* SPDX-License-Identifier: MIT */
#include "heap/replay.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/table.h"
#include "heap/replay_parts.h"

/* No chunk is there. */
#define NO_CHUNK UINT64_MAX

/* Addresses that are looked up together. */
#define TOGETHER 128

/* First capacity of an array of copies. */
#define COPIES_MIN 16

void heap_ordinal_map_init(struct heap_ordinal_map *ordinals)
{
    *ordinals = (struct heap_ordinal_map){.chunk = NO_CHUNK};
}

void heap_ordinal_map_free(struct heap_ordinal_map *ordinals)
{
    free(ordinals->records);
    heap_ordinal_map_init(ordinals);
}

/* Ordinals are valid in one chunk, and records until the next sweep. */
void heap_ordinal_map_begin(struct heap_ordinal_map *ordinals, struct heap_live *live,
                            uint64_t chunk)
{
    if (ordinals->chunk == chunk)
        return;
    if (heap_live_is_littered(live))
        heap_live_sweep(live);
    ordinals->count = 0;
    ordinals->chunk = chunk;
}

/* Fetches all slots, then all records, then looks up: the cache misses of a group overlap. */
static enum ttd_status replay_ordinals_find_records(struct heap_live *live,
                                                    const uint64_t *addresses, size_t count,
                                                    uint32_t *records)
{
    uint32_t hashes[TOGETHER];
    size_t slots[TOGETHER];
    enum ttd_status status = heap_live_reserve(live, live->used_records + count);
    if (status != TTD_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        hashes[i] = heap_live_hash(live, addresses[i]);
        heap_live_prefetch(live, hashes[i]);
    }
    for (size_t i = 0; i < count; i++) {
        slots[i] = heap_live_find_slot(live, hashes[i]);
        heap_live_prefetch_record(live, slots[i]);
    }
    for (size_t i = 0; i < count; i++)
        records[i] = heap_live_record_at(live, addresses[i], hashes[i], slots[i]);
    return TTD_OK;
}

/* Records can be looked up ahead of the events, because no event changes the record of an
 * address. */
enum ttd_status heap_ordinal_map_add(struct heap_ordinal_map *ordinals, struct heap_live *live,
                                     const struct ttd_batch *batch)
{
    size_t end = batch->first_ordinal + batch->address_count;
    if (ordinals->count < batch->first_ordinal)
        return TTD_ERROR_ARGUMENT;
    enum ttd_status status = grow_array((void **)&ordinals->records, &ordinals->capacity, end,
                                        sizeof *ordinals->records);
    while (status == TTD_OK && ordinals->count < end) {
        size_t remaining = end - ordinals->count;
        size_t count = remaining < TOGETHER ? remaining : TOGETHER;
        status = replay_ordinals_find_records(
            live, batch->addresses + (ordinals->count - batch->first_ordinal), count,
            ordinals->records + ordinals->count);
        ordinals->count += status == TTD_OK ? count : 0;
    }
    return status;
}

void heap_queue_free(struct heap_queue *queue)
{
    free(queue->items);
    *queue = (struct heap_queue){0};
}

static bool replay_pending_is_before(const struct heap_pending *a, const struct heap_pending *b)
{
    int order = ttd_position_compare(a->block.allocated, b->block.allocated);
    return order < 0 || (order == 0 && a->block.event < b->block.event);
}

enum ttd_status heap_queue_push(struct heap_queue *queue, const struct heap_pending *pending)
{
    enum ttd_status status = grow_array((void **)&queue->items, &queue->capacity, queue->count + 1,
                                        sizeof *queue->items);
    if (status != TTD_OK)
        return status;
    size_t i = queue->count++;
    while (i > 0 && replay_pending_is_before(pending, &queue->items[(i - 1) / 2])) {
        queue->items[i] = queue->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    queue->items[i] = *pending;
    return TTD_OK;
}

void heap_queue_pop(struct heap_queue *queue, struct heap_pending *pending)
{
    *pending = queue->items[0];
    const struct heap_pending *last = &queue->items[--queue->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= queue->count)
            break;
        if (child + 1 < queue->count &&
            replay_pending_is_before(&queue->items[child + 1], &queue->items[child]))
            child++;
        if (!replay_pending_is_before(&queue->items[child], last))
            break;
        queue->items[i] = queue->items[child];
        i = child;
    }
    if (queue->count)
        queue->items[i] = *last;
}

static size_t replay_copies_bytes(size_t capacity)
{
    return capacity * sizeof(struct heap_block);
}

void heap_block_copies_free(struct heap_block_copies *copies)
{
    table_free(copies->blocks, replay_copies_bytes(copies->capacity));
    free(copies->records);
    *copies = (struct heap_block_copies){.count = 0};
}

enum ttd_status heap_block_copies_grow(struct heap_block_copies *copies)
{
    size_t capacity =
        copies->capacity ? table_next(copies->capacity, sizeof *copies->blocks) : COPIES_MIN;
    /* Only when both have more room is there more. */
    size_t for_records = copies->capacity;
    enum ttd_status status =
        grow_array((void **)&copies->records, &for_records, capacity, sizeof *copies->records);
    if (status != TTD_OK)
        return status;
    struct heap_block *blocks = table_resize(copies->blocks, replay_copies_bytes(copies->capacity),
                                             replay_copies_bytes(capacity));
    if (!blocks)
        return TTD_ERROR_NO_MEMORY;
    copies->blocks = blocks;
    copies->capacity = capacity;
    return TTD_OK;
}

/* The peak, kept by a replay beside the state. */

static struct heap_peak replay_peak_of(const struct heap_replay *replay)
{
    return (struct heap_peak){replay->position, replay->live.bytes, replay->live.outer_count};
}

void heap_set_peak(struct heap_replay *replay)
{
    replay->peak = replay_peak_of(replay);
    replay->ended_since_peak.count = 0;
}

struct heap_peak heap_replay_peak(const struct heap_replay *replay)
{
    return heap_is_peak(replay) ? replay_peak_of(replay) : replay->peak;
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

static enum ttd_status replay_tell(struct heap_replay *replay, const struct heap_effect *effect)
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

static uint32_t replay_record_of(const struct heap_replay *replay, const struct heap_block *block)
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
    effect->record = block ? replay_record_of(replay, block) : HEAP_NO_RECORD;
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
        status = replay_tell(replay, effect);
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
    return replay_tell(replay, effect);
}

enum ttd_status heap_tell_released(struct heap_replay *replay, const struct ttd_event *event,
                                   struct heap_block *block, bool continues)
{
    struct heap_effect here;
    struct heap_effect *effect = effect_place(replay, &here);
    build_of_call(effect, replay, block ? HEAP_RELEASED : HEAP_UNKNOWN_RELEASE, event, block);
    effect->continues = continues;
    return replay_tell(replay, effect);
}

enum ttd_status heap_tell_destroyed(struct heap_replay *replay, const struct ttd_event *event,
                                    uint64_t count)
{
    struct heap_effect here;
    struct heap_effect *effect = effect_place(replay, &here);
    build_of_call(effect, replay, HEAP_DESTROYED, event, NULL);
    effect->count = count;
    return replay_tell(replay, effect);
}

void heap_discard(void *context, const struct heap_block *block, struct ttd_position end)
{
    struct heap_replay *replay = context;
    struct heap_block copy = *block;
    if (replay->observer_status == TTD_OK && heap_was_at_peak(replay, block, end))
        replay->observer_status = heap_block_copies_add(&replay->ended_since_peak, block,
                                                        replay_record_of(replay, block));
    if (!heap_is_wanted(replay, HEAP_DISCARDED))
        return;
    struct heap_effect here;
    struct heap_effect *effect = effect_place(replay, &here);
    *effect = (struct heap_effect){.kind = HEAP_DISCARDED,
                                   .action = TTD_ACTION_DESTROY,
                                   .position = end,
                                   .record = replay_record_of(replay, block),
                                   .wall_time = replay->wall_time,
                                   .address = block->address,
                                   .block = &copy};
    (void)replay_tell(replay, effect);
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
