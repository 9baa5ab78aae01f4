/* SPDX-License-Identifier: MIT */
#include "support/heap/random_graph.h"

static unsigned pick_flags(struct entropy *entropy, unsigned rarity, unsigned possible)
{
    return entropy_pick(entropy, rarity) ? 0 : entropy_pick(entropy, possible + 1) & possible;
}

bool random_graph(struct graph *graph, struct entropy *entropy)
{
    uint32_t nodes = entropy_pick(entropy, RANDOM_GRAPH_NODES + 1);
    unsigned degree = 1 + entropy_pick(entropy, 5);
    unsigned rarity = 1 + entropy_pick(entropy, 6);
    unsigned roots = nodes ? entropy_pick(entropy, 6) : 0;
    bool is_made = graph_init(graph, nodes) == TTD_OK;
    for (uint32_t node = 0; is_made && node < nodes; node++) {
        for (unsigned i = entropy_pick(entropy, degree); is_made && i > 0; i--)
            is_made =
                graph_add_edge(graph, node, entropy_pick(entropy, nodes),
                               pick_flags(entropy, rarity, GRAPH_INTERIOR | GRAPH_STALE)) == TTD_OK;
    }
    for (unsigned i = 0; is_made && i < roots; i++)
        is_made =
            graph_add_root(graph, entropy_pick(entropy, nodes),
                           pick_flags(entropy, rarity, GRAPH_INTERIOR | GRAPH_STALE | GRAPH_WEAK),
                           i) == TTD_OK;
    if (is_made)
        graph_finish(graph);
    return is_made;
}

node_set random_graph_closure(const struct graph *graph, node_set from, unsigned unused_flags,
                              node_set without)
{
    node_set reached = from & ~without;
    for (node_set before = 0; before != reached;) {
        before = reached;
        for (uint32_t node = 0; node < graph->node_count; node++) {
            if (!(reached >> node & 1))
                continue;
            for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
                if (!(graph->flags[i] & unused_flags))
                    reached |= (node_set)1 << graph->targets[i] & ~without;
            }
        }
    }
    return reached;
}

node_set random_graph_held(const struct graph *graph, unsigned unused_flags)
{
    node_set held = 0;
    for (uint64_t i = 0; i < graph->root_count; i++) {
        if (!(graph->root_flags[i] & unused_flags))
            held |= (node_set)1 << graph->root_targets[i];
    }
    return held;
}
