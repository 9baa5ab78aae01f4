/* SPDX-License-Identifier: MIT */
#include "graph/graph.h"

#include "base/table.h"

/* Capacity of arrays that are filled for the first time. */
#define CAPACITY_MIN 64

/* Places in `sizes`. */
enum { FIRST, TARGETS, FLAGS, ROOT_TARGETS, ROOT_FLAGS, ROOT_IDS };

/* Grows an array to `count` elements, unless a failure of another array left it that large. */
static enum ttd_status resize(void **array, size_t *old_size, size_t count, size_t element)
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
    resize((void **)&(graph)->array, &(graph)->sizes[slot], count, sizeof *(graph)->array)

static size_t next_capacity(size_t capacity)
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
    return graph_reserve_edges(graph, next_capacity(graph->edge_capacity));
}

void graph_drop_edges(struct graph *graph)
{
    graph->edge_count = 0;
    graph->begun = 0;
}

static enum ttd_status grow_roots(struct graph *graph)
{
    size_t capacity = next_capacity(graph->root_capacity);
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
            graph->root_count < GRAPH_NODES_MAX ? grow_roots(graph) : TTD_ERROR_NO_MEMORY;
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
