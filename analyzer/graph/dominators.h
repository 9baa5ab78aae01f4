/* SPDX-License-Identifier: MIT */
/** Dominators: the blocks that would become free if a block went away.
 *
 * A node dominates another if every way from the roots to the other leads through it. The nearest
 * of those that dominate a node is its parent in the dominator tree. A node retains all nodes that
 * it dominates, itself included. */
#ifndef ANALYZER_GRAPH_DOMINATORS_H
#define ANALYZER_GRAPH_DOMINATORS_H

#include "graph/graph_classes.h"
#include "graph/graph.h"

/** The roots of a dominator tree, and their groups. All zero for the roots of the graph. */
struct graph_dominators_query {
    /** The definitely lost nodes count as roots too, so that every node is in the tree; or NULL. */
    const struct graph_classes *classes;
    /** By root: its group, below `group_count`. Each group gets a node of its own between the top
     * and the targets of its roots, so that the retained size of a variable, thread or module is
     * known. NULL without groups. */
    const uint32_t *groups;
    uint32_t group_count;
};

/** The dominator tree. Its nodes are the nodes of the graph, then the groups, then the top. */
struct graph_dominators {
    /** Nodes of the graph, and of the tree: group g is node_count + g, the top is count - 1. */
    uint32_t node_count;
    uint32_t count;
    /** By node: the parent; GRAPH_NONE for the top, and for nodes that no root leads to. */
    uint32_t *parents;
    /** The nodes of the tree from the top down. All that a node dominates follows it, with nothing
     * else in between. */
    uint32_t *order;
    /** Nodes in `order`. */
    uint32_t reached;
    /** By node: its rank in `order`; GRAPH_NONE for nodes that are not there. */
    uint32_t *ranks;
    /** By node: nodes that it dominates, itself included; 0 for nodes that are not in `order`. */
    uint32_t *extents;
    /** By node: bytes of the blocks that it retains; UINT64_MAX if the sum is more than that. */
    uint64_t *bytes;
};

/**
 * Finds the dominator tree, on every graph in nearly linear time. The tree takes 24 bytes a node.
 * Finding it takes at most 32 bytes a node and 4 an edge, before the tree is allocated, then 20
 * bytes a node.
 *
 * @param sizes  by node
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY, also with more than UINT32_MAX edges or roots.
 * graph_dominators_free() may be called in any case.
 */
enum ttd_status graph_dominate(const struct graph *graph,
                               const struct graph_dominators_query *query, const uint64_t *sizes,
                               struct graph_dominators *dominators);
void graph_dominators_free(struct graph_dominators *dominators);

/** Number of blocks that a node of the tree retains, itself included; 0 if it is not in `order`. */
uint32_t graph_retained_blocks(const struct graph_dominators *dominators, uint32_t node);

/**
 * Goes through the children of a node of the tree, in the order of `order`.
 *
 * @param cursor  0 at first
 * @return the child, or GRAPH_NONE after the last one
 */
uint32_t graph_dominators_child(const struct graph_dominators *dominators, uint32_t node,
                                uint32_t *cursor);

/** The retained size of a group of nodes. */
struct graph_retained {
    uint32_t blocks;
    /** UINT64_MAX if the sum is more than that. */
    uint64_t bytes;
};

/**
 * Sums up the nodes that each node of a group retains alone: the union, each block once. Nodes that
 * only several nodes of a group together hold are left out: see graph_retained_together().
 *
 * @param groups    by node of the graph: its group, below `group_count`, or GRAPH_NONE
 * @param retained  `group_count` results
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY with the results untouched.
 */
enum ttd_status graph_retained_by_group(const struct graph_dominators *dominators,
                                        const uint32_t *groups, uint32_t group_count,
                                        struct graph_retained *retained);

/** Groups that graph_retained_together() takes at once. */
#define GRAPH_TOGETHER_MAX 64

/** Up to GRAPH_TOGETHER_MAX groups of nodes. */
struct graph_together {
    /** The dominator tree of the graph, made with its roots. */
    const struct graph_dominators *dominators;
    /** By node of the graph: its group, or GRAPH_NONE. */
    const uint32_t *groups;
    /** The groups from `first` on, and how many of them. */
    uint32_t first;
    uint32_t count;
    /** By node of the graph. */
    const uint64_t *sizes;
};

/**
 * Sums up the nodes that groups retain: all nodes that no root leads to without the nodes of the
 * group, these included. It takes 13 bytes a node, and mostly one or two passes over the edges, at
 * worst one for each group.
 *
 * @param retained  `query->count` results
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY with the results untouched.
 */
enum ttd_status graph_retained_together(const struct graph *graph,
                                        const struct graph_together *query,
                                        struct graph_retained *retained);

/** Up to GRAPH_TOGETHER_MAX groups of roots. */
struct graph_leading {
    /** By root of the graph: its group. */
    const uint32_t *groups;
    /** The groups from `first` on, and how many of them. */
    uint32_t first;
    uint32_t count;
    /** By node of the graph. */
    const uint64_t *sizes;
};

/**
 * Sums up the blocks that groups of roots point at and lead to, each block once. It takes as much
 * as graph_retained_together().
 *
 * @param direct, reached  `query->count` results each
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY with the results untouched.
 */
enum ttd_status graph_reached_together(const struct graph *graph, const struct graph_leading *query,
                                       struct graph_retained *direct,
                                       struct graph_retained *reached);

#endif
