/* SPDX-License-Identifier: MIT */
/** Depth-first search from the top of a graph: the tree of first visits. */
#ifndef ANALYZER_GRAPH_SPANNING_TREE_H
#define ANALYZER_GRAPH_SPANNING_TREE_H

#include "graph/dominators.h"

/* The nodes above a graph, where every way begins: groups of roots, and the top. */

/** Nodes are numbered from the last node of the graph on: first the groups, then the top. Edges of
 * the n-th are those from first[n] up to first[n + 1]. */
struct graph_upper {
    /** Groups and the top. */
    uint32_t count;
    uint32_t edge_count;
    uint32_t *first;
    uint32_t *targets;
};

/**
 * Makes the upper nodes. The top leads to the groups, or else to the targets of the roots, and to
 * definitely lost nodes if the query has classes.
 *
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY, also with more edges than UINT32_MAX. graph_upper_free()
 * may be called in any case.
 */
enum ttd_status graph_upper_init(struct graph_upper *upper, const struct graph *graph,
                                 const struct graph_dominators_query *query);
void graph_upper_free(struct graph_upper *upper);

/** A node of the tree. Its members lie together, since every edge reads all of them. */
struct graph_visit {
    /** When it was entered, counted from the top, which is 0; 0 if it was not. */
    uint32_t number;
    /** Edges from nodes that were entered later. */
    uint32_t later_sources;
};

/** Nodes are called by their numbers: when they were entered. */
struct spanning_tree {
    /** Nodes of the graph and above it. */
    uint32_t node_count;
    /** By node of the graph or above it. */
    struct graph_visit *visits;
    /** Numbers in use. */
    uint32_t reached;
    /** By number: the node. */
    uint32_t *nodes;
    /** By number: from where it was entered. */
    uint32_t *parents;
    /** By number: the lowest of the nodes entered before it that have an edge to it. */
    uint32_t *earliest;
};

/** Edges of a node that are still to be followed. */
struct edge_range {
    const uint32_t *targets;
    uint32_t next;
    uint32_t end;
};

/** All edges of a node of the graph or above it. */
static inline struct edge_range graph_edges_of(const struct graph *graph,
                                               const struct graph_upper *upper, uint32_t node)
{
    if (node < graph->node_count)
        return (struct edge_range){graph->targets, (uint32_t)graph->first[node],
                                   (uint32_t)graph->first[node + 1]};
    node -= graph->node_count;
    return (struct edge_range){upper->targets, upper->first[node], upper->first[node + 1]};
}

/**
 * Searches a graph of at most UINT32_MAX edges.
 *
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY. spanning_tree_free() may be called in any case.
 */
enum ttd_status spanning_tree_init(struct spanning_tree *tree, const struct graph *graph,
                                   const struct graph_upper *upper);
void spanning_tree_free(struct spanning_tree *tree);

/** Frees `visits` and `earliest`. */
void spanning_tree_trim(struct spanning_tree *tree);

#endif
