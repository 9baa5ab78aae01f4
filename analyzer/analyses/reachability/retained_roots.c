/* SPDX-License-Identifier: MIT */
/* The blocks of each root: those that it points at, leads to, and alone leads to. */
#include <stdlib.h>

#include "analyses/reachability/retained_parts.h"
#include "heap/site_table.h"

/** Marking from one group of roots at a time. */
struct marker {
    const struct heap_held *held;
    /** By node: the last group that has reached it, from 1 on. */
    uint32_t *marks;
    uint32_t *queue;
};

/* Appends a node that the group has not reached yet. */
static size_t reach(struct marker *marker, uint32_t mark, uint32_t node, size_t count)
{
    if (marker->marks[node] == mark)
        return count;
    marker->marks[node] = mark;
    marker->queue[count] = node;
    return count + 1;
}

static uint64_t sum_of(const struct marker *marker, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes = heap_add(bytes, heap_nodes_size(&marker->held->reach.nodes, marker->queue[i]));
    return bytes;
}

/* Fills in what a group points at and what it leads to. */
static void mark(struct marker *marker, struct heap_retainer *item)
{
    const struct graph *graph = &marker->held->reach.graph;
    uint32_t group = item->index - 1;
    size_t count = 0;
    for (uint64_t i = 0; i < graph->root_count; i++)
        if (marker->held->root_groups[i] == group)
            count = reach(marker, item->index, graph->root_targets[i], count);
    item->blocks = count;
    item->bytes = sum_of(marker, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t node = marker->queue[i];
        for (uint64_t edge = graph->first[node]; edge < graph->first[node + 1]; edge++)
            count = reach(marker, item->index, graph->targets[edge], count);
    }
    item->reachable_blocks = count;
    item->reachable_bytes = sum_of(marker, count);
}

/* Sums up the blocks that each kept root leads to. Only those: each takes a pass over the graph. */
static enum ttd_status mark_all(struct heap_retained *retained)
{
    size_t nodes = retained->held.reach.nodes.count;
    struct marker marker = {.held = &retained->held,
                            .marks = calloc(nodes + 1, sizeof *marker.marks),
                            .queue = calloc(nodes + 1, sizeof *marker.queue)};
    bool has_memory = marker.marks && marker.queue;
    for (size_t i = 0; i < retained->count && has_memory; i++)
        mark(&marker, &retained->items[i]);
    free(marker.marks);
    free(marker.queue);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

enum ttd_status retained_roots(struct heap_retained *retained, size_t limit)
{
    enum ttd_status status = TTD_OK;
    for (uint32_t i = 0; i < retained->held.group_count && status == TTD_OK; i++) {
        struct heap_retainer item =
            retained_of_node(retained, heap_held_group_node(&retained->held, i));
        status = retained_add(retained, &item);
    }
    retained->total = retained->count;
    retained_cut(retained, limit);
    return status == TTD_OK ? mark_all(retained) : status;
}
