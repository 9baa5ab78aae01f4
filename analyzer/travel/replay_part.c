/* SPDX-License-Identifier: MIT */
#include "travel/replay_part.h"

#include <stdlib.h>

#include "base/grow.h"
#include "heap/heap_live.h"
#include "travel/heap_cursor.h"

/* Bits for the addresses of blocks. Neighbours have bits that lie together. */
#define TRACKED_BITS    (UINT64_C(1) << 22)
#define TRACKED_GRANULE 16

struct part_replay {
    const struct heap_part_route *route;
    /** By address, modulo the number of bits: whether a block there had some of the memory. */
    uint64_t *tracked;
    struct heap_replay replay;
    /** The events of a batch that concern the memory, and their addresses, two for each. */
    struct ttd_event *events;
    size_t capacity;
    uint64_t *addresses;
    size_t address_capacity;
    /** Batches that were applied. */
    uint64_t batches;
    /** Number of the event that must come next; UINT64_MAX if any may. */
    uint64_t next;
};

static bool part_range_meets(void *context, uint64_t address, uint64_t size)
{
    const struct heap_address_range *range = context;
    return address <= range->last && (address >= range->first || range->first - address < size);
}

struct heap_watched_memory heap_watch_range(struct heap_address_range *range)
{
    return (struct heap_watched_memory){range, part_range_meets};
}

static inline uint64_t part_tracked_bit(uint64_t address)
{
    return address / TRACKED_GRANULE % TRACKED_BITS;
}

static inline bool part_is_tracked(const struct part_replay *part, uint64_t address)
{
    uint64_t bit = part_tracked_bit(address);
    return part->tracked[bit / 64] >> bit % 64 & 1;
}

static inline void part_track(struct part_replay *part, uint64_t address)
{
    uint64_t bit = part_tracked_bit(address);
    part->tracked[bit / 64] |= UINT64_C(1) << bit % 64;
}

static inline bool part_meets(const struct part_replay *part, uint64_t address, uint64_t size)
{
    const struct heap_watched_memory *memory = &part->route->memory;
    return memory->meets(memory->context, address, size ? size : 1);
}

/* Whether the block of a ReAlloc is acquired only after the next event, perhaps in another
 * batch. */
static inline bool part_is_in_flight(const struct ttd_event *event, const struct ttd_event *end)
{
    return event->action == TTD_ACTION_REALLOC &&
           (event + 1 == end ||
            ttd_position_compare(event->time_end, ttd_event_position(event + 1)) > 0);
}

/*
 * A block with some of the memory is changed only by events at its own address, or by its heap's
 * destruction. Its address is known from the acquiring event; a ReAlloc to the same address may
 * have begun before, and end after that. More events do no harm: the replay is right for each
 * address by itself.
 */
static inline bool part_is_relevant(struct part_replay *part, const struct ttd_event *event,
                                    const struct ttd_event *end)
{
    if (event->address &&
        (part_is_tracked(part, event->address) || part_meets(part, event->address, event->size))) {
        part_track(part, event->address);
        return true;
    }
    if (event->base_address &&
        (part_is_tracked(part, event->base_address) || part_meets(part, event->base_address, 1)))
        return true;
    return event->action == TTD_ACTION_DESTROY || part_is_in_flight(event, end);
}

static uint32_t part_add_address(uint64_t *addresses, size_t *count, uint64_t address)
{
    if (!address)
        return 0;
    addresses[*count] = address;
    return (uint32_t)(*count)++;
}

/* Applies events as a chunk of their own, in which each address has an ordinal of its own. */
static enum ttd_status part_apply(struct part_replay *part, size_t count)
{
    size_t applied;
    size_t address_count = 0;
    enum ttd_status status = grow_array((void **)&part->addresses, &part->address_capacity,
                                        2 * count, sizeof *part->addresses);
    if (status != TTD_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        struct ttd_event *event = &part->events[i];
        event->address_ordinal = part_add_address(part->addresses, &address_count, event->address);
        event->base_ordinal =
            part_add_address(part->addresses, &address_count, event->base_address);
    }
    struct ttd_batch batch = {.kind = TTD_KIND_EVENTS,
                              .count = count,
                              .chunk = {.offset = part->batches++},
                              .u.events = part->events,
                              .addresses = part->addresses,
                              .address_count = address_count};
    return heap_replay_apply(&part->replay, &batch, part->route->to, &applied);
}

static enum ttd_status part_see_events(struct part_replay *part, const struct ttd_batch *batch)
{
    size_t count = 0;
    const struct ttd_event *end = batch->u.events + batch->count;
    for (const struct ttd_event *event = batch->u.events; event < end; event++) {
        if (!part_is_relevant(part, event, end))
            continue;
        enum ttd_status status =
            grow_array((void **)&part->events, &part->capacity, count + 1, sizeof *part->events);
        if (status != TTD_OK)
            return status;
        part->events[count++] = *event;
    }
    return count ? part_apply(part, count) : TTD_OK;
}

/* Starts at the keyframe of the route. All its blocks become live: those without any of the memory
 * do no harm, since the replay is right for each address by itself. */
static enum ttd_status part_start_at_keyframe(struct part_replay *part,
                                              const struct heap_trace *trace,
                                              struct ttd_error *error)
{
    const struct heap_part_route *route = part->route;
    size_t cursor = 0;
    struct heap_block *block;
    enum ttd_status status =
        heap_keyframes_restore(trace->keyframes, route->start, &part->replay, NULL);
    while (status == TTD_OK && (block = heap_live_each(&part->replay.live, &cursor))) {
        if (!part_meets(part, block->address, block->size))
            continue;
        part_track(part, block->address);
        if (route->live)
            status = route->live(route->observer->context, block);
    }
    part->next = route->start->next;
    return status == TTD_OK ? ttd_reader_seek_event(trace->reader, part->next, error) : status;
}

static enum ttd_status part_see_batch(struct part_replay *part, const struct heap_trace *trace,
                                      const struct ttd_batch *batch)
{
    bool has_events = batch->kind == TTD_KIND_EVENTS;
    if (batch->kind == TTD_KIND_LOSSES && batch->synthetic && !part->route->tolerates_damage)
        return TTD_ERROR_CORRUPT;
    if (has_events && part->next != UINT64_MAX && batch->u.events[0].number != part->next)
        return TTD_ERROR_CORRUPT;
    enum ttd_status status =
        trace->hook.batch ? trace->hook.batch(trace->hook.context, batch) : TTD_OK;
    if (status == TTD_OK)
        status = heap_parents_add(&part->replay.live.parents, batch);
    part->next = has_events ? UINT64_MAX : part->next;
    return status == TTD_OK && has_events ? part_see_events(part, batch) : status;
}

static bool part_is_behind(const struct heap_part_route *route, const struct ttd_batch *batch)
{
    return batch->kind == TTD_KIND_EVENTS &&
           (batch->u.events[0].number >= route->end ||
            ttd_position_compare(ttd_event_position(&batch->u.events[0]), route->to) > 0);
}

/* Effects of the blocks of destroyed heaps come last. */
static enum ttd_status part_finish(struct part_replay *part)
{
    enum ttd_status status = heap_replay_settle(&part->replay, part->route->to);
    if (status == TTD_OK)
        heap_live_discard_stale(&part->replay.live);
    return status == TTD_OK ? part->replay.observer_status : status;
}

static enum ttd_status part_read(struct part_replay *part, const struct heap_trace *trace,
                                 struct heap_prefetcher *prefetcher, struct ttd_error *error)
{
    const struct heap_part_route *route = part->route;
    enum ttd_status status = ttd_reader_rewind(trace->reader, HEAP_CURSOR_KINDS);
    if (status == TTD_OK && route->start)
        status = part_start_at_keyframe(part, trace, error);
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = heap_prefetcher_next(prefetcher, &batch, error);
        bool is_over = heap_is_over(status) && (status == TTD_END || route->tolerates_damage);
        if (is_over || (status == TTD_OK && part_is_behind(route, &batch)))
            return part_finish(part);
        if (status != TTD_OK)
            return heap_is_over(status) ? TTD_ERROR_CORRUPT : status;
        status = part_see_batch(part, trace, &batch);
    }
    return status;
}

enum ttd_status heap_replay_part(const struct heap_trace *trace,
                                 const struct heap_part_route *route, struct ttd_error *error)
{
    struct part_replay part = {.route = route, .next = UINT64_MAX};
    struct heap_prefetcher prefetcher;
    heap_prefetcher_init(&prefetcher, trace->reader);
    prefetcher.is_off = trace->is_one_of_two;
    part.tracked = calloc(TRACKED_BITS / 64, sizeof *part.tracked);
    enum ttd_status status = part.tracked ? TTD_OK : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK)
        status = heap_replay_init(&part.replay, route->observer);
    if (status == TTD_OK)
        status = part_read(&part, trace, &prefetcher, error);
    heap_prefetcher_free(&prefetcher);
    heap_replay_free(&part.replay);
    free(part.events);
    free(part.addresses);
    free(part.tracked);
    return status == TTD_END ? TTD_OK : status;
}
