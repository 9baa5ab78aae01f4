/* SPDX-License-Identifier: MIT */
#include "graph/paths.h"

#include "graph/arrays.h"

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
