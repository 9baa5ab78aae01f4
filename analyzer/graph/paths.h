/* SPDX-License-Identifier: MIT */
/** Ways from roots to blocks, and who points at a block. */
#ifndef ANALYZER_GRAPH_PATHS_H
#define ANALYZER_GRAPH_PATHS_H

#include <stdbool.h>

#include "graph/graph.h"

/** Shortest ways from the roots to all nodes. */
struct graph_paths {
    uint32_t node_count;
    /** By node: pointers between it and a block that a root points at, which has 0 itself;
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
