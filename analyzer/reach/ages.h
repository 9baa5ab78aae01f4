/* SPDX-License-Identifier: MIT */
/** Which edges may be stale, before their ages are known: see stale.h. Private to reach/. */
#ifndef ANALYZER_REACH_AGES_H
#define ANALYZER_REACH_AGES_H

#include "graph/graph.h"
#include "reach/nodes.h"

/** Facts about the source of the previous edge, kept for the next edge of the same source. */
struct reach_ages {
    /** False if no edge can be stale; then nothing is looked up. */
    bool is_asked;
    /** HEAP_NO_NODE before the first edge. */
    uint32_t source;
    /** Words in it may be older than the block itself. */
    bool has_old_words;
};

static inline void reach_ages_init(struct reach_ages *ages, bool is_asked)
{
    *ages = (struct reach_ages){.is_asked = is_asked, .source = HEAP_NO_NODE};
}

/** Returns GRAPH_STALE for an edge whose word may be older than its block; otherwise 0. Edges of
 * one source come one after the other. */
static inline unsigned reach_ages_flag(struct reach_ages *ages, const struct heap_nodes *nodes,
                                       uint32_t source, uint32_t target)
{
    if (!ages->is_asked)
        return 0;
    if (source != ages->source) {
        ages->source = source;
        ages->has_old_words = !heap_nodes_is_cleared(nodes, source);
    }
    /* The edge from a block to the one it lies in stands for no word in memory. */
    return ages->has_old_words && heap_nodes_outer(nodes, source) != target ? GRAPH_STALE : 0;
}

#endif
