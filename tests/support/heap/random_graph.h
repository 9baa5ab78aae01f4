/* SPDX-License-Identifier: MIT */
/** Graphs of blocks for tests: small random ones, and what brute force says of them. */
#ifndef SUPPORT_RANDOM_GRAPH_H
#define SUPPORT_RANDOM_GRAPH_H

#include <stdbool.h>

#include "graph/graph.h"
#include "support/entropy.h"

enum { RANDOM_GRAPH_NODES = 24 };

/**
 * Makes a graph of at most RANDOM_GRAPH_NODES nodes: sparse or dense, with few or many flags, with
 * self loops and with edges that are there twice. Returns false without memory.
 */
bool random_graph(struct graph *graph, struct entropy *entropy);

/** A set of nodes: bit n is node n. */
typedef uint32_t node_set;

/**
 * The nodes that `from` leads to, itself included, by edges without `unused_flags` between nodes
 * that are not in `without`.
 */
node_set random_graph_closure(const struct graph *graph, node_set from, unsigned unused_flags,
                              node_set without);

/** The nodes that roots without `unused_flags` point at. */
node_set random_graph_held(const struct graph *graph, unsigned unused_flags);

#endif
