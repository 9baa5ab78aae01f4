/* SPDX-License-Identifier: MIT */
/** Strongly connected components: the largest sets of nodes of which each leads to all others. */
#ifndef ANALYZER_GRAPH_COMPONENTS_H
#define ANALYZER_GRAPH_COMPONENTS_H

#include "graph/graph.h"

/**
 * Finds the components of a part of the graph. Takes 12 bytes for each node of the part besides
 * the result.
 *
 * @param outside  by node: not 0 if the node and its edges are no part
 * @param lowest   by node, all zero: is set to the lowest node of its component
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY.
 */
enum ttd_status graph_components(const struct graph *graph, const uint8_t *outside,
                                 uint32_t *lowest);

#endif
