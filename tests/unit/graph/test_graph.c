/* SPDX-License-Identifier: MIT */
/* The graph of blocks, edge by edge. */
#include <criterion/criterion.h>

#include "graph/graph.h"
#include "support/entropy.h"
#include "support/memory_limit.h"

static struct graph graph;

static void finish(void)
{
    graph_free(&graph);
}

TestSuite(graph, .fini = finish);

Test(graph, has_the_edges_of_each_node_in_order)
{
    cr_assert_eq(graph_init(&graph, 5), TTD_OK);
    cr_assert_eq(graph_add_edge(&graph, 1, 4, GRAPH_INTERIOR), TTD_OK);
    cr_assert_eq(graph_add_edge(&graph, 1, 0, 0), TTD_OK);
    cr_assert_eq(graph_add_edge(&graph, 3, 3, GRAPH_STALE), TTD_OK);
    graph_finish(&graph);

    static const uint64_t first[] = {0, 0, 2, 2, 3, 3};
    static const uint32_t targets[] = {4, 0, 3};
    static const uint8_t flags[] = {GRAPH_INTERIOR, 0, GRAPH_STALE};
    cr_assert_arr_eq(graph.first, first, sizeof first);
    cr_assert_arr_eq(graph.targets, targets, sizeof targets);
    cr_assert_arr_eq(graph.flags, flags, sizeof flags);
    cr_assert_eq(graph.edge_count, 3);
}

Test(graph, without_edges_or_nodes_is_complete)
{
    cr_assert_eq(graph_init(&graph, 0), TTD_OK);
    graph_finish(&graph);
    cr_assert_eq(graph.first[0], 0);
    graph_free(&graph);

    cr_assert_eq(graph_init(&graph, 3), TTD_OK);
    graph_finish(&graph);
    for (uint32_t i = 0; i <= 3; i++)
        cr_assert_eq(graph.first[i], 0);
}

Test(graph, keeps_roots_as_they_came)
{
    cr_assert_eq(graph_init(&graph, 5), TTD_OK);
    for (uint32_t i = 0; i < 100000; i++)
        cr_assert_eq(graph_add_root(&graph, i % 5, i % 7, i * 3), TTD_OK);

    cr_assert_eq(graph.root_count, 100000);
    for (uint32_t i = 0; i < 100000; i++) {
        cr_assert_eq(graph.root_targets[i], i % 5);
        cr_assert_eq(graph.root_flags[i], i % 7);
        cr_assert_eq(graph.root_ids[i], i * 3);
    }
}

Test(graph, keeps_a_million_edges_at_the_nodes_they_came_for)
{
    enum { NODES = 100000, EDGES = 1000000 };
    static uint32_t sources[EDGES];
    struct entropy entropy = entropy_of_seed(1);
    cr_assert_eq(graph_init(&graph, NODES), TTD_OK);
    uint32_t source = 0;
    for (uint32_t i = 0; i < EDGES; i++) {
        if (entropy_pick(&entropy, 12) == 0 && source < NODES - 3)
            source += entropy_pick(&entropy, 3);
        sources[i] = source;
        cr_assert_eq(graph_add_edge(&graph, source, (i * 7 + 1) % NODES, i % 4), TTD_OK);
    }
    graph_finish(&graph);

    cr_assert_eq(graph.edge_count, EDGES);
    uint32_t edge = 0;
    for (uint32_t node = 0; node < NODES; node++) {
        cr_assert_eq(graph.first[node], edge);
        for (; edge < graph.first[node + 1]; edge++) {
            cr_assert_eq(sources[edge], node);
            cr_assert_eq(graph.targets[edge], (edge * 7 + 1) % NODES);
            cr_assert_eq(graph.flags[edge], edge % 4);
        }
    }
    cr_assert_eq(edge, EDGES);
}

Test(graph, says_that_memory_is_missing_and_keeps_what_it_has)
{
    cr_assert_eq(graph_init(&graph, 10), TTD_OK);
    cr_assert_eq(memory_limit((size_t)64 << 20), 0);
    enum ttd_status status = TTD_OK;
    uint64_t added = 0;
    while (status == TTD_OK && added < 100000000) {
        status = graph_add_edge(&graph, 3, (uint32_t)(added % 10), 0);
        added += status == TTD_OK;
    }

    cr_assert_eq(status, TTD_ERROR_NO_MEMORY);
    cr_assert_eq(graph_add_edge(&graph, 3, 1, 0), TTD_ERROR_NO_MEMORY);
    graph_finish(&graph);
    cr_assert_eq(graph.edge_count, added);
    cr_assert_eq(graph.first[4], added);
    for (uint64_t i = 0; i < added; i++)
        cr_assert_eq(graph.targets[i], i % 10);
}

Test(graph, refuses_more_nodes_than_there_are_numbers)
{
    cr_assert_eq(graph_init(&graph, UINT32_MAX), TTD_ERROR_NO_MEMORY);
    graph_free(&graph);
    cr_assert_eq(graph_init(&graph, GRAPH_NODES_MAX + 1), TTD_ERROR_NO_MEMORY);
}
