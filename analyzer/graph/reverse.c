/* SPDX-License-Identifier: MIT */
#include "graph/paths.h"

#include "graph/arrays.h"

/* Counts targets by node: `ends` has for each the end of its part of a sorted array. */
static void find_ends(uint64_t *ends, uint32_t node_count, const uint32_t *targets, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        ends[targets[i]]++;
    for (uint32_t node = 1; node <= node_count; node++)
        ends[node] += ends[node - 1];
}

/* Sorts from the last to the first: what is the end of a node's part becomes its begin. */
static void turn_around(struct graph_reverse *reverse, const struct graph *graph)
{
    find_ends(reverse->first, graph->node_count, graph->targets, graph->edge_count);
    for (uint32_t node = graph->node_count; node-- > 0;) {
        for (uint64_t i = graph->first[node + 1]; i-- > graph->first[node];)
            reverse->sources[--reverse->first[graph->targets[i]]] = node;
    }
    find_ends(reverse->first_root, graph->node_count, graph->root_targets, graph->root_count);
    for (uint32_t i = (uint32_t)graph->root_count; i-- > 0;)
        reverse->roots[--reverse->first_root[graph->root_targets[i]]] = i;
}

enum ttd_status graph_reverse_init(struct graph_reverse *reverse, const struct graph *graph)
{
    size_t bounds = (size_t)graph->node_count + 1;
    *reverse = (struct graph_reverse){
        .node_count = graph->node_count,
        .edge_count = graph->edge_count,
        .root_count = graph->root_count,
        .first = array_new(bounds, sizeof *reverse->first),
        .sources = array_new(graph->edge_count, sizeof *reverse->sources),
        .first_root = array_new(bounds, sizeof *reverse->first_root),
        .roots = array_new(graph->root_count, sizeof *reverse->roots),
    };
    if (!reverse->first || !reverse->sources || !reverse->first_root || !reverse->roots)
        return TTD_ERROR_NO_MEMORY;
    turn_around(reverse, graph);
    return TTD_OK;
}

void graph_reverse_free(struct graph_reverse *reverse)
{
    size_t bounds = (size_t)reverse->node_count + 1;
    array_free(reverse->first, bounds, sizeof *reverse->first);
    array_free(reverse->sources, reverse->edge_count, sizeof *reverse->sources);
    array_free(reverse->first_root, bounds, sizeof *reverse->first_root);
    array_free(reverse->roots, reverse->root_count, sizeof *reverse->roots);
    *reverse = (struct graph_reverse){0};
}
