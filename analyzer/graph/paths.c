/* SPDX-License-Identifier: MIT */
#include "graph/paths.h"

#include "graph/graph_arrays.h"

struct wave {
    struct graph_paths *paths;
    /* Nodes that were reached, in order of distance. */
    uint32_t *queue;
    uint32_t end;
};

static void paths_reach(struct wave *wave, uint32_t node, uint32_t distance, uint32_t origin)
{
    if (wave->paths->distances[node] != GRAPH_NONE)
        return;
    wave->paths->distances[node] = distance;
    wave->paths->origins[node] = origin;
    wave->queue[wave->end++] = node;
}

static void paths_find(struct wave *wave, const struct graph *graph, unsigned unused_flags)
{
    for (uint32_t i = 0; i < graph->root_count; i++) {
        if (!(graph->root_flags[i] & unused_flags))
            paths_reach(wave, graph->root_targets[i], 0, i);
    }
    for (uint32_t begin = 0; begin < wave->end; begin++) {
        uint32_t node = wave->queue[begin];
        uint32_t distance = wave->paths->distances[node] + 1;
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
            if (!(graph->flags[i] & unused_flags))
                paths_reach(wave, graph->targets[i], distance, node);
        }
    }
}

enum ttd_status graph_paths_find(const struct graph *graph, unsigned unused_flags,
                                 struct graph_paths *paths)
{
    uint32_t count = graph->node_count;
    *paths = (struct graph_paths){.node_count = count};
    paths->distances = array_new(count, sizeof *paths->distances);
    paths->origins = array_new(count, sizeof *paths->origins);
    struct wave wave = {.paths = paths, .queue = array_new(count, sizeof *wave.queue)};
    bool has_memory = paths->distances && paths->origins && wave.queue;
    for (uint32_t node = 0; has_memory && node < count; node++) {
        paths->distances[node] = GRAPH_NONE;
        paths->origins[node] = GRAPH_NONE;
    }
    if (has_memory)
        paths_find(&wave, graph, unused_flags);
    array_free(wave.queue, count, sizeof *wave.queue);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

void graph_paths_free(struct graph_paths *paths)
{
    array_free(paths->distances, paths->node_count, sizeof *paths->distances);
    array_free(paths->origins, paths->node_count, sizeof *paths->origins);
    *paths = (struct graph_paths){0};
}

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
