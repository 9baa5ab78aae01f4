/* SPDX-License-Identifier: MIT */
/** The nodes above a graph, from which every way begins: groups of roots, and the top. */
#ifndef ANALYZER_GRAPH_UPPER_H
#define ANALYZER_GRAPH_UPPER_H

#include "graph/dominators.h"

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
 * Makes the upper nodes. The top leads to the groups, else to what the roots point at, and to
 * definitely lost nodes if the query has classes.
 *
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY, also with more edges than UINT32_MAX.
 * graph_upper_free() may be called in any case.
 */
enum ttd_status graph_upper_init(struct graph_upper *upper, const struct graph *graph,
                                 const struct graph_dominators_query *query);
void graph_upper_free(struct graph_upper *upper);

#endif
