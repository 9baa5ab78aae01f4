/* SPDX-License-Identifier: MIT */
#include "reach/builder.h"

#include <stdlib.h>

#include "base/grow.h"
#include "heap/heap_live.h"

/* The registers of a call's first argument, in DWARF's numbers. */
#define RDI  5
#define WORD 8

/* Sets the blocks that may be in memory. The program has written only the common part: the gained
 * part has not been written, and the lost part is given up. An old block elsewhere is whole, until
 * it is released. */
static void in_flight_take(struct reach_in_flight *call, const struct heap_pending *pending)
{
    struct heap_block *before = &call->blocks[REACH_BEFORE];
    struct heap_block *after = &call->blocks[REACH_AFTER];
    *call = (struct reach_in_flight){.has = {pending->has_previous, true}};
    *after = pending->block;
    if (!pending->has_previous)
        return;
    *before = pending->previous;
    if (after->size > before->size)
        after->size = before->size;
    if (after->address != before->address || after->heap != before->heap)
        return;
    before->size = after->size;
    call->has[REACH_AFTER] = false;
}

static bool in_flight_overlap(const struct heap_block *a, const struct heap_block *b)
{
    uint64_t last = a->size ? a->size - 1 : 0;
    return heap_block_covers(b, a->address,
                             last > UINT64_MAX - a->address ? UINT64_MAX : a->address + last);
}

/* Whether two blocks cannot be in memory at the same time: they overlap, and neither may lie within
 * the other. */
static bool in_flight_collide(const struct heap_parents *parents, const struct heap_block *a,
                              const struct heap_block *b)
{
    bool may_nest = a->heap != b->heap && (heap_parents_get(parents, a->heap) != TTD_NONE ||
                                           heap_parents_get(parents, b->heap) != TTD_NONE);
    return in_flight_overlap(a, b) && !may_nest;
}

/* Leaves out the blocks whose memory belongs to other blocks. */
static void in_flight_drop_reused(struct heap_reach *reach, const struct heap_live *live)
{
    size_t cursor = 0;
    const struct heap_block *other;
    while ((other = heap_live_each(live, &cursor))) {
        for (size_t i = 0; i < 2 * reach->in_flight_count; i++) {
            struct reach_in_flight *call = &reach->in_flight[i / 2];
            if (in_flight_collide(&live->parents, &call->blocks[i % 2], other))
                call->has[i % 2] = false;
        }
    }
}

/* Where one call takes the memory that another one gives up, one of the blocks becomes the memory
 * of both. */
static void in_flight_join(struct heap_reach *reach, const struct heap_parents *parents, size_t i)
{
    struct reach_in_flight *call = &reach->in_flight[i / 2];
    struct heap_block *block = &call->blocks[i % 2];
    for (size_t j = 0; j < i && call->has[i % 2]; j++) {
        struct reach_in_flight *other = &reach->in_flight[j / 2];
        struct heap_block *joined = &other->blocks[j % 2];
        if (!other->has[j % 2] || !in_flight_collide(parents, block, joined))
            continue;
        uint64_t end = joined->address + joined->size, other_end = block->address + block->size;
        joined->address = joined->address < block->address ? joined->address : block->address;
        joined->size = (end > other_end ? end : other_end) - joined->address;
        call->has[i % 2] = false;
        call->is_joined[i % 2] = true;
    }
}

static enum ttd_status in_flight_make_live(struct reach_in_flight *call, unsigned which,
                                           struct heap_live *live)
{
    const struct heap_block *block = &call->blocks[which];
    struct heap_block replaced;
    uint32_t *record = &call->records[which];
    enum ttd_status status =
        heap_live_record(live, block->address, heap_live_hash(live, block->address), record);
    if (status == TTD_OK)
        status = heap_live_acquire(live, record, block, &replaced);
    call->is_live[which] = status == TTD_OK;
    return status;
}

enum ttd_status reach_in_flight_begin(struct heap_reach *reach, struct heap_replay *replay)
{
    const struct heap_queue *queue = &replay->queue;
    struct heap_live *live = &replay->live;
    enum ttd_status status = TTD_OK;
    if (!queue->count)
        return TTD_OK;
    reach->in_flight = calloc(queue->count, sizeof *reach->in_flight);
    if (!reach->in_flight)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < queue->count; i++) {
        const struct heap_pending *pending = &queue->items[i];
        /* Without an address it is an allocation. */
        if (pending->previous_address)
            in_flight_take(&reach->in_flight[reach->in_flight_count++], pending);
    }
    in_flight_drop_reused(reach, live);
    for (size_t i = 0; i < 2 * reach->in_flight_count; i++)
        in_flight_join(reach, &live->parents, i);
    for (size_t i = 0; i < reach->in_flight_count; i++) {
        struct reach_in_flight *call = &reach->in_flight[i];
        bool is_somewhere = false;
        for (unsigned which = 0; which < 2 && status == TTD_OK; which++) {
            is_somewhere = is_somewhere || call->has[which] || call->is_joined[which];
            if (call->has[which])
                status = in_flight_make_live(call, which, live);
        }
        if (!is_somewhere)
            reach->snapshot.flags |= TTD_SNAPSHOT_INCOMPLETE;
    }
    return status;
}

void reach_in_flight_end(struct heap_reach *reach, struct heap_live *live)
{
    for (size_t i = 0; i < 2 * reach->in_flight_count; i++) {
        struct reach_in_flight *call = &reach->in_flight[i / 2];
        if (call->is_live[i % 2])
            (void)heap_live_release(live, call->records[i % 2]);
        call->is_live[i % 2] = false;
    }
}

/* The number of the region that has a thread's registers; 0 if there is none. */
static uint32_t in_flight_registers(const struct heap_reach *reach, ttd_id thread)
{
    for (size_t i = 0; i < reach->region_count; i++) {
        const struct ttd_region *region = &reach->regions[i];
        if (region->kind == TTD_REGION_REGISTERS && region->thread == thread &&
            region->size >= (RDI + 1) * WORD)
            return (uint32_t)i + 1;
    }
    return 0;
}

static bool in_flight_is_held(const struct graph *graph, uint32_t node)
{
    for (uint64_t i = 0; i < graph->root_count; i++) {
        if (graph->root_targets[i] == node && !graph->root_flags[i])
            return true;
    }
    return false;
}

/* Adds a root to a block that no other root holds: the call itself holds it. */
static enum ttd_status in_flight_hold(struct reach_builder *builder, uint32_t node, ttd_id thread)
{
    struct heap_reach *reach = builder->reach;
    if (in_flight_is_held(&reach->graph, node))
        return TTD_OK;
    struct ttd_reference reference = {.region = in_flight_registers(reach, thread),
                                      .offset = RDI * WORD,
                                      .value = heap_nodes_address(&reach->nodes, node)};
    if (reference.region)
        return reach_builder_add_root(builder, &reference, 0);
    reach->snapshot.flags |= TTD_SNAPSHOT_INCOMPLETE;
    return TTD_OK;
}

static enum ttd_status in_flight_continue(struct reach_builder *builder, uint32_t before,
                                          uint32_t after)
{
    struct reach_late_edge edge = {.source = before, .target = after, .offset = REACH_CONTINUES};
    enum ttd_status status = grow_array((void **)&builder->late, &builder->late_capacity,
                                        builder->late_count + 1, sizeof *builder->late);
    if (status == TTD_OK)
        builder->late[builder->late_count++] = edge;
    return status;
}

enum ttd_status reach_in_flight_apply(struct reach_builder *builder)
{
    struct heap_reach *reach = builder->reach;
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < reach->in_flight_count && status == TTD_OK; i++) {
        const struct reach_in_flight *call = &reach->in_flight[i];
        uint32_t nodes[2];
        for (unsigned which = 0; which < 2; which++)
            nodes[which] = call->has[which] || call->is_joined[which]
                               ? heap_nodes_at(&reach->nodes, call->blocks[which].address)
                               : HEAP_NO_NODE;
        uint32_t before = nodes[REACH_BEFORE], after = nodes[REACH_AFTER];
        uint32_t first = before != HEAP_NO_NODE ? before : after;
        if (first != HEAP_NO_NODE)
            status = in_flight_hold(builder, first, call->blocks[REACH_AFTER].thread);
        if (status == TTD_OK && after != HEAP_NO_NODE && after != first)
            status = in_flight_continue(builder, before, after);
    }
    return status;
}
