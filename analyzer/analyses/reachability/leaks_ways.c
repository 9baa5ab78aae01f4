/* SPDX-License-Identifier: MIT */
/* The ways in which possibly lost blocks are held: by a pointer into the block, or otherwise. */
#include <stdlib.h>

#include "analyses/reachability/leaks_parts.h"

/* Ways by node. */
struct ways_search {
    const struct heap_reach *reach;
    struct heap_way *ways;
};

static bool ways_is_possible(const struct heap_reach *reach, uint32_t node)
{
    return graph_class_of(&reach->verdicts, node) == GRAPH_POSSIBLY_LOST;
}

/* Sees a pointer that does not own its target. Of several ways the one with the smallest offset is
 * taken, which is the likeliest owner. */
static void ways_see(const struct ways_search *search, uint32_t target, uint64_t offset)
{
    struct heap_way *way = &search->ways[target];
    uint32_t shown = offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX;
    if (!ways_is_possible(search->reach, target))
        return;
    if (way->kind != HEAP_WAY_INTO || shown < way->offset)
        *way = (struct heap_way){HEAP_WAY_INTO, shown};
}

static void ways_see_roots(const struct ways_search *search)
{
    const struct heap_reach *reach = search->reach;
    const struct graph *graph = &reach->graph;
    for (uint64_t i = 0; i < graph->root_count; i++) {
        const struct heap_root_word *word = &reach->roots[graph->root_ids[i]];
        const struct ttd_region *region = heap_reach_region(reach, word->region);
        struct heap_way *way = &search->ways[graph->root_targets[i]];
        if (!(graph->root_flags[i] & GRAPH_INTERIOR))
            continue;
        if (region && region->kind != TTD_REGION_HEAP)
            ways_see(search, graph->root_targets[i], word->target_offset);
        else if (way->kind == HEAP_WAY_NONE)
            way->kind = HEAP_WAY_OUTSIDE;
    }
}

/* Pointers of lost blocks hold nothing. */
static void ways_see_edges(const struct ways_search *search)
{
    const struct heap_reach *reach = search->reach;
    const struct graph *graph = &reach->graph;
    uint32_t source = 0;
    for (size_t i = 0; i < reach->inner_count; i++) {
        uint64_t edge = reach->inner[i].edge;
        while (graph->first[source + 1] <= edge)
            source++;
        if (reach->verdicts.marks[source] && source != graph->targets[edge])
            ways_see(search, graph->targets[edge], reach->inner[i].offset);
    }
}

enum ttd_status leaks_find_ways(struct leaks_search *search)
{
    const struct heap_reach *reach = &search->reach;
    struct heap_groups *groups = &search->leaks->kinds[HEAP_POSSIBLY_LOST];
    struct ways_search ways = {.reach = reach};
    if (!groups->count)
        return TTD_OK;
    ways.ways = calloc((size_t)reach->nodes.count + 1, sizeof *ways.ways);
    if (!ways.ways)
        return TTD_ERROR_NO_MEMORY;
    ways_see_roots(&ways);
    ways_see_edges(&ways);
    for (uint32_t node = 0; node < reach->nodes.count; node++) {
        if (!search->is_leak[node] || !ways_is_possible(reach, node))
            continue;
        struct heap_block block = heap_nodes_block(&reach->nodes, node);
        struct heap_way way = ways.ways[node];
        if (way.kind == HEAP_WAY_NONE)
            way.kind = HEAP_WAY_BELOW;
        heap_way_merge(&heap_groups_find(groups, &block)->way, way);
    }
    free(ways.ways);
    return TTD_OK;
}
