/* SPDX-License-Identifier: MIT */
/* Strongly connected components, against closures. */
#include <criterion/criterion.h>

#include "graph/graph_classes.h"
#include "support/heap/random_graph.h"

static struct graph graph;

static void expect_components(node_set without)
{
    uint8_t outside[RANDOM_GRAPH_NODES + 1] = {0};
    uint32_t lowest[RANDOM_GRAPH_NODES + 1] = {0};
    node_set below[RANDOM_GRAPH_NODES];
    for (uint32_t node = 0; node < graph.node_count; node++) {
        outside[node] = without >> node & 1;
        below[node] = random_graph_closure(&graph, (node_set)1 << node, 0, without);
    }
    cr_assert_eq(graph_components(&graph, outside, lowest), TTD_OK);
    for (uint32_t node = 0; node < graph.node_count; node++) {
        if (outside[node])
            continue;
        uint32_t other = 0;
        while (!(below[node] >> other & 1 && below[other] >> node & 1))
            other++;
        cr_assert_eq(lowest[node], other);
    }
}

Test(components, of_random_graphs_and_parts_of_them_are_those_of_closures)
{
    struct entropy entropy = entropy_of_seed(1);
    for (unsigned i = 0; i < 20000; i++) {
        cr_assert(random_graph(&graph, &entropy));
        expect_components(0);
        expect_components((node_set)(entropy_next(&entropy) & entropy_next(&entropy)));
        graph_free(&graph);
    }
}
