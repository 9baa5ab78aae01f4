/* SPDX-License-Identifier: MIT */
#include "graph/graph.h"

#include "base/table.h"

/* Capacity of arrays that are filled for the first time. */
#define CAPACITY_MIN 64

/* Places in `sizes`. */
enum { FIRST, TARGETS, FLAGS, ROOT_TARGETS, ROOT_FLAGS, ROOT_IDS };

/* Grows an array to `count` elements, unless a failure of another array left it that large. */
static enum ttd_status graph_resize(void **array, size_t *old_size, size_t count, size_t element)
{
    if (count > SIZE_MAX / element)
        return TTD_ERROR_NO_MEMORY;
    size_t size = count * element;
    if (size <= *old_size)
        return TTD_OK;
    void *resized = table_resize(*array, *old_size, size);
    if (!resized)
        return TTD_ERROR_NO_MEMORY;
    *array = resized;
    *old_size = size;
    return TTD_OK;
}

#define RESIZE(graph, array, slot, count)                                                          \
    graph_resize((void **)&(graph)->array, &(graph)->sizes[slot], count, sizeof *(graph)->array)

static size_t graph_next_capacity(size_t capacity)
{
    return capacity ? table_next(capacity, sizeof(uint32_t)) : CAPACITY_MIN;
}

enum ttd_status graph_init(struct graph *graph, uint32_t node_count)
{
    *graph = (struct graph){.node_count = node_count};
    if (node_count > GRAPH_NODES_MAX)
        return TTD_ERROR_NO_MEMORY;
    return RESIZE(graph, first, FIRST, (size_t)node_count + 1);
}

void graph_free(struct graph *graph)
{
    table_free(graph->first, graph->sizes[FIRST]);
    table_free(graph->targets, graph->sizes[TARGETS]);
    table_free(graph->flags, graph->sizes[FLAGS]);
    table_free(graph->root_targets, graph->sizes[ROOT_TARGETS]);
    table_free(graph->root_flags, graph->sizes[ROOT_FLAGS]);
    table_free(graph->root_ids, graph->sizes[ROOT_IDS]);
    *graph = (struct graph){0};
}

enum ttd_status graph_reserve_edges(struct graph *graph, size_t capacity)
{
    if (capacity <= graph->edge_capacity)
        return TTD_OK;
    enum ttd_status status = RESIZE(graph, targets, TARGETS, capacity);
    if (status == TTD_OK)
        status = RESIZE(graph, flags, FLAGS, capacity);
    if (status == TTD_OK)
        graph->edge_capacity = capacity;
    return status;
}

enum ttd_status graph_grow_edges(struct graph *graph)
{
    return graph_reserve_edges(graph, graph_next_capacity(graph->edge_capacity));
}

void graph_drop_edges(struct graph *graph)
{
    graph->edge_count = 0;
    graph->begun = 0;
}

static enum ttd_status graph_grow_roots(struct graph *graph)
{
    size_t capacity = graph_next_capacity(graph->root_capacity);
    enum ttd_status status = RESIZE(graph, root_targets, ROOT_TARGETS, capacity);
    if (status == TTD_OK)
        status = RESIZE(graph, root_flags, ROOT_FLAGS, capacity);
    if (status == TTD_OK)
        status = RESIZE(graph, root_ids, ROOT_IDS, capacity);
    if (status == TTD_OK)
        graph->root_capacity = capacity;
    return status;
}

enum ttd_status graph_add_root(struct graph *graph, uint32_t target, unsigned flags, uint32_t id)
{
    assert(target < graph->node_count);
    if (graph->root_count == graph->root_capacity) {
        enum ttd_status status =
            graph->root_count < GRAPH_NODES_MAX ? graph_grow_roots(graph) : TTD_ERROR_NO_MEMORY;
        if (status != TTD_OK)
            return status;
    }
    graph->root_targets[graph->root_count] = target;
    graph->root_flags[graph->root_count] = (uint8_t)flags;
    graph->root_ids[graph->root_count++] = id;
    return TTD_OK;
}

void graph_finish(struct graph *graph)
{
    while (graph->begun <= graph->node_count)
        graph->first[graph->begun++] = graph->edge_count;
}

struct wave {
    struct graph_paths *paths;
    /* Nodes that were reached, in order of distance. */
    uint32_t *queue;
    uint32_t end;
};

static void graph_reach_paths(struct wave *wave, uint32_t node, uint32_t distance, uint32_t origin)
{
    if (wave->paths->distances[node] != GRAPH_NONE)
        return;
    wave->paths->distances[node] = distance;
    wave->paths->origins[node] = origin;
    wave->queue[wave->end++] = node;
}

static void graph_find_paths(struct wave *wave, const struct graph *graph, unsigned unused_flags)
{
    for (uint32_t i = 0; i < graph->root_count; i++) {
        if (!(graph->root_flags[i] & unused_flags))
            graph_reach_paths(wave, graph->root_targets[i], 0, i);
    }
    for (uint32_t begin = 0; begin < wave->end; begin++) {
        uint32_t node = wave->queue[begin];
        uint32_t distance = wave->paths->distances[node] + 1;
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
            if (!(graph->flags[i] & unused_flags))
                graph_reach_paths(wave, graph->targets[i], distance, node);
        }
    }
}

enum ttd_status graph_paths_find(const struct graph *graph, unsigned unused_flags,
                                 struct graph_paths *paths)
{
    uint32_t count = graph->node_count;
    *paths = (struct graph_paths){.node_count = count};
    paths->distances = graph_array_new(count, sizeof *paths->distances);
    paths->origins = graph_array_new(count, sizeof *paths->origins);
    struct wave wave = {.paths = paths, .queue = graph_array_new(count, sizeof *wave.queue)};
    bool has_memory = paths->distances && paths->origins && wave.queue;
    for (uint32_t node = 0; has_memory && node < count; node++) {
        paths->distances[node] = GRAPH_NONE;
        paths->origins[node] = GRAPH_NONE;
    }
    if (has_memory)
        graph_find_paths(&wave, graph, unused_flags);
    graph_array_free(wave.queue, count, sizeof *wave.queue);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

void graph_paths_free(struct graph_paths *paths)
{
    graph_array_free(paths->distances, paths->node_count, sizeof *paths->distances);
    graph_array_free(paths->origins, paths->node_count, sizeof *paths->origins);
    *paths = (struct graph_paths){0};
}

/* Counts targets by node: `ends` has for each the end of its part of a sorted array. */
static void graph_find_ends(uint64_t *ends, uint32_t node_count, const uint32_t *targets,
                            uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        ends[targets[i]]++;
    for (uint32_t node = 1; node <= node_count; node++)
        ends[node] += ends[node - 1];
}

/* Sorts from the last to the first: the end of a node's part becomes its begin. */
static void graph_turn_around(struct graph_reverse *reverse, const struct graph *graph)
{
    graph_find_ends(reverse->first, graph->node_count, graph->targets, graph->edge_count);
    for (uint32_t node = graph->node_count; node-- > 0;) {
        for (uint64_t i = graph->first[node + 1]; i-- > graph->first[node];)
            reverse->sources[--reverse->first[graph->targets[i]]] = node;
    }
    graph_find_ends(reverse->first_root, graph->node_count, graph->root_targets, graph->root_count);
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
        .first = graph_array_new(bounds, sizeof *reverse->first),
        .sources = graph_array_new((size_t)graph->edge_count, sizeof *reverse->sources),
        .first_root = graph_array_new(bounds, sizeof *reverse->first_root),
        .roots = graph_array_new((size_t)graph->root_count, sizeof *reverse->roots),
    };
    if (!reverse->first || !reverse->sources || !reverse->first_root || !reverse->roots)
        return TTD_ERROR_NO_MEMORY;
    graph_turn_around(reverse, graph);
    return TTD_OK;
}

void graph_reverse_free(struct graph_reverse *reverse)
{
    size_t bounds = (size_t)reverse->node_count + 1;
    graph_array_free(reverse->first, bounds, sizeof *reverse->first);
    graph_array_free(reverse->sources, (size_t)reverse->edge_count, sizeof *reverse->sources);
    graph_array_free(reverse->first_root, bounds, sizeof *reverse->first_root);
    graph_array_free(reverse->roots, (size_t)reverse->root_count, sizeof *reverse->roots);
    *reverse = (struct graph_reverse){0};
}
