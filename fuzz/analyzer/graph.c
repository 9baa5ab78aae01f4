/* SPDX-License-Identifier: MIT */
/*
 * A snapshot may make any graph: classes, dominators and shortest ways of a small one are what
 * brute force finds.
 */
#include "../target.h"
#include "graph/dominators.h"
#include "graph/graph.h"
#include "support/heap/random_graph.h"

static node_set reached(const struct graph *graph, unsigned unused_flags)
{
    return random_graph_closure(graph, random_graph_held(graph, unused_flags), unused_flags, 0);
}

static void check_classes(const struct graph *graph, const struct graph_classes *classes)
{
    node_set reachable = reached(graph, GRAPH_INTERIOR);
    node_set possible = reached(graph, 0);
    for (uint32_t node = 0; node < graph->node_count; node++) {
        enum graph_class class = graph_class_of(classes, node);
        target_require((class == GRAPH_REACHABLE) == (reachable >> node & 1), "reachable");
        target_require((class <= GRAPH_POSSIBLY_LOST) == (possible >> node & 1), "lost");
        if (class <= GRAPH_POSSIBLY_LOST)
            continue;
        uint32_t leader = classes->leaders[node];
        node_set below = random_graph_closure(graph, (node_set)1 << leader, 0, possible);
        target_require(below >> node & 1, "a leader leads to what belongs to it");
        target_require((class == GRAPH_DEFINITELY_LOST) == (leader == node), "a leader's class");
        node_set above = random_graph_closure(graph, (node_set)1 << node, 0, possible);
        target_require(leader == node || !(above >> leader & 1) || leader < node,
                       "the lowest of a cycle leads");
        for (uint32_t other = 0; other < graph->node_count; other++) {
            node_set of_other = random_graph_closure(graph, (node_set)1 << other, 0, possible);
            target_require(!(of_other >> leader & 1) || below >> other & 1,
                           "nothing holds a leader");
        }
    }
}

static unsigned size_of(node_set set)
{
    return (unsigned)__builtin_popcount(set);
}

static void check_dominators(const struct graph *graph, const struct graph_dominators *dominators,
                             const uint64_t *sizes)
{
    node_set held = random_graph_held(graph, 0);
    node_set all = random_graph_closure(graph, held, 0, 0);
    for (uint32_t node = 0; node < graph->node_count; node++) {
        node_set without = random_graph_closure(graph, held, 0, (node_set)1 << node);
        node_set retained = all & ~without;
        uint64_t bytes = 0;
        for (uint32_t other = 0; other < graph->node_count; other++)
            bytes += retained >> other & 1 ? sizes[other] : 0;
        target_require(graph_retained_blocks(dominators, node) == size_of(retained), "blocks");
        target_require(dominators->bytes[node] == bytes, "bytes");
    }
}

static void check_paths(const struct graph *graph, const struct graph_paths *paths)
{
    node_set all = reached(graph, 0);
    for (uint32_t node = 0; node < graph->node_count; node++) {
        uint32_t distance = paths->distances[node];
        target_require((distance != GRAPH_NONE) == (all >> node & 1), "a way");
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++)
            target_require(distance == GRAPH_NONE ||
                               paths->distances[graph->targets[i]] <= distance + 1,
                           "a shortest way");
        target_require(distance == GRAPH_NONE || distance == 0 ||
                           paths->distances[paths->origins[node]] + 1 == distance,
                       "a step");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct entropy entropy = {.data = data, .size = size};
    struct graph graph;
    struct graph_classes classes;
    struct graph_dominators dominators;
    struct graph_paths paths;
    uint64_t sizes[RANDOM_GRAPH_NODES];
    struct graph_dominators_query query = {0};
    target_require(random_graph(&graph, &entropy), "memory");
    for (uint32_t node = 0; node < RANDOM_GRAPH_NODES; node++)
        sizes[node] = entropy_below(&entropy, 1000);
    target_require(graph_classify(&graph, &classes) == TTD_OK, "memory");
    target_require(graph_dominate(&graph, &query, sizes, &dominators) == TTD_OK, "memory");
    target_require(graph_paths_find(&graph, 0, &paths) == TTD_OK, "memory");
    check_classes(&graph, &classes);
    check_dominators(&graph, &dominators, sizes);
    check_paths(&graph, &paths);
    graph_paths_free(&paths);
    graph_dominators_free(&dominators);
    graph_classes_free(&classes);
    graph_free(&graph);
    return 0;
}
