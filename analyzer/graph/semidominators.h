/* SPDX-License-Identifier: MIT */
/** Immediate dominators of the nodes of a spanning tree. */
#ifndef ANALYZER_GRAPH_SEMIDOMINATORS_H
#define ANALYZER_GRAPH_SEMIDOMINATORS_H

#include "graph/spanning_tree.h"

/**
 * Replaces the parents of a spanning tree by immediate dominators. Frees what spanning_tree_trim()
 * frees.
 *
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY.
 */
enum ttd_status graph_find_dominators(struct spanning_tree *tree, const struct graph *graph,
                                      const struct graph_upper *upper);

#endif
