/* SPDX-License-Identifier: MIT */
/** The graph of a heap: blocks, the pointers between them, and roots. A node is a block, numbered
 * from 0 in order of address. Knows nothing of traces. */
#ifndef ANALYZER_GRAPH_GRAPH_H
#define ANALYZER_GRAPH_GRAPH_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/status.h>

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
    /** By root: the node that it points at, flags, and what the caller knows it by. */
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
 * Makes room for `capacity` edges at once, which is faster than by and by.
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

#endif
