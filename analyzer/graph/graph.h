/* SPDX-License-Identifier: MIT */
/** The graph of a heap: blocks, the pointers between them, and roots. A node is a block, numbered
 * from 0 in order of address. Knows nothing of traces. */
#ifndef ANALYZER_GRAPH_GRAPH_H
#define ANALYZER_GRAPH_GRAPH_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ttdtrace/status.h>

#include "base/table.h"

/** No node. */
#define GRAPH_NONE UINT32_MAX

/** The largest number of nodes: numbers beyond it remain for nodes that an algorithm adds. */
#define GRAPH_NODES_MAX (UINT32_MAX / 2)

/** Flags of a pointer. */
enum graph_flag {
    /** It points into its target, neither to the start nor to where an owner points. */
    GRAPH_INTERIOR = 1,
    /** Nothing proves that the program has written the word. */
    GRAPH_STALE = 2,
    /** A root that only a stack or a register has. */
    GRAPH_WEAK = 4,
};

enum { GRAPH_ARRAYS = 6 };

/** Edges of node n are those from first[n] up to first[n + 1], once the graph is finished. */
struct graph {
    uint32_t node_count;
    uint64_t edge_count;
    /** By node, and one more. */
    uint64_t *first;
    /** By edge: the target, and flags. */
    uint32_t *targets;
    uint8_t *flags;

    uint64_t root_count;
    /** By root: its target node, flags, and the caller's name for it. */
    uint32_t *root_targets;
    uint8_t *root_flags;
    uint32_t *root_ids;

    /** Private: nodes whose `first` is known, room for edges and roots, and bytes of each array. */
    uint32_t begun;
    size_t edge_capacity;
    size_t root_capacity;
    size_t sizes[GRAPH_ARRAYS];
};

/**
 * Makes a graph of nodes without edges. It takes 8 bytes a node, and 5 bytes an edge.
 *
 * @return TTD_OK; TTD_ERROR_NO_MEMORY also for more nodes than GRAPH_NODES_MAX. graph_free() may be
 * called in any case.
 */
enum ttd_status graph_init(struct graph *graph, uint32_t node_count);
void graph_free(struct graph *graph);

/**
 * Makes room for `capacity` edges at once: faster than by and by.
 *
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY with the graph as before.
 */
enum ttd_status graph_reserve_edges(struct graph *graph, size_t capacity);

/** Private: makes room for more edges. */
enum ttd_status graph_grow_edges(struct graph *graph);

/**
 * Appends an edge. Sources never decrease from one call to the next; targets are in any order. An
 * edge may lead to its source, or be there already.
 *
 * @param flags  of GRAPH_INTERIOR, GRAPH_STALE
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY with the graph as before.
 */
static inline enum ttd_status graph_add_edge(struct graph *graph, uint32_t source, uint32_t target,
                                             unsigned flags)
{
    assert(source < graph->node_count && target < graph->node_count);
    assert(source + 1 >= graph->begun);
    if (graph->edge_count == graph->edge_capacity) {
        enum ttd_status status = graph_grow_edges(graph);
        if (status != TTD_OK)
            return status;
    }
    while (graph->begun <= source)
        graph->first[graph->begun++] = graph->edge_count;
    graph->targets[graph->edge_count] = target;
    graph->flags[graph->edge_count++] = (uint8_t)flags;
    return TTD_OK;
}

/** Removes all edges, and keeps the room for them. */
void graph_drop_edges(struct graph *graph);

/**
 * Appends a root, at any time.
 *
 * @param flags  of GRAPH_INTERIOR, GRAPH_STALE, GRAPH_WEAK
 * @param id     kept in `root_ids`
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY with the graph as before.
 */
enum ttd_status graph_add_root(struct graph *graph, uint32_t target, unsigned flags, uint32_t id);

/** Ends the adding of edges. The algorithms need a finished graph, and leave it as it is. */
void graph_finish(struct graph *graph);

/** Allocates `count` elements of `size` bytes, all zero: no more than are used, since pages that
 * another array had are cleared. NULL without memory. */
static inline void *graph_array_new(size_t count, size_t size)
{
    return count < SIZE_MAX / size ? table_resize(NULL, 0, (count ? count : 1) * size) : NULL;
}

/** @param array  NULL, or the result of graph_array_new() for the same count and size */
static inline void graph_array_free(void *array, size_t count, size_t size)
{
    if (array)
        table_free(array, (count ? count : 1) * size);
}

/** Counts the elements of an array that are 0. */
static inline uint32_t graph_count_zeros(const uint8_t *array, uint32_t count)
{
    uint32_t zeros = 0;
    for (uint32_t i = 0; i < count; i++)
        zeros += !array[i];
    return zeros;
}

/** Adds sizes; UINT64_MAX if the sum is more than that. */
static inline uint64_t graph_add_saturated(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Ways from roots to blocks, and who points at a block. */

/** Shortest ways from the roots to all nodes. */
struct graph_paths {
    uint32_t node_count;
    /** By node: pointers between it and a block that a root points at (0 for that block);
     * GRAPH_NONE if no root leads to it. */
    uint32_t *distances;
    /** By node: the node before it on a shortest way; of distance 0 the number of the root. */
    uint32_t *origins;
};

/**
 * Finds shortest ways by pointers that have none of `unused_flags`. Among ways of the same length,
 * the one from the first root counts.
 *
 * @param unused_flags  of enum graph_flag
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY. graph_paths_free() may be called in any case.
 */
enum ttd_status graph_paths_find(const struct graph *graph, unsigned unused_flags,
                                 struct graph_paths *paths);
void graph_paths_free(struct graph_paths *paths);

/** The reverse edges of each node n: their sources are those from first[n] up to first[n + 1], in
 * order of address, each as often as it has edges to the node. Likewise roots, in their order.
 */
struct graph_reverse {
    uint32_t node_count;
    uint64_t edge_count;
    uint64_t root_count;
    uint64_t *first;
    uint32_t *sources;
    uint64_t *first_root;
    uint32_t *roots;
};

/**
 * Turns all edges around.
 *
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY. graph_reverse_free() may be called in any case.
 */
enum ttd_status graph_reverse_init(struct graph_reverse *reverse, const struct graph *graph);
void graph_reverse_free(struct graph_reverse *reverse);

#endif
