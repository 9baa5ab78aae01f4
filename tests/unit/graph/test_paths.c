/* SPDX-License-Identifier: MIT */
/* Shortest ways from roots, and who points at a block, against closures. */
#include <criterion/criterion.h>

#include "graph/graph.h"
#include "support/cpu_limit.h"
#include "support/heap/random_graph.h"
#include "support/memory_limit.h"

#define GRAPHS 20000

static struct graph graph;
static struct graph_paths paths;
static struct graph_reverse reverse;

static void forget(void)
{
    graph_reverse_free(&reverse);
    graph_paths_free(&paths);
    graph_free(&graph);
}

TestSuite(paths, .fini = forget);

static bool has_edge(uint32_t source, uint32_t target, unsigned unused_flags)
{
    for (uint64_t i = graph.first[source]; i < graph.first[source + 1]; i++) {
        if (graph.targets[i] == target && !(graph.flags[i] & unused_flags))
            return true;
    }
    return false;
}

static bool is_held_by(uint64_t root, uint32_t node, unsigned unused_flags)
{
    return graph.root_targets[root] == node && !(graph.root_flags[root] & unused_flags);
}

/* Adds what a set of nodes points at. */
static node_set step(node_set from, unsigned unused_flags)
{
    node_set next = from;
    for (uint32_t source = 0; source < graph.node_count; source++) {
        for (uint32_t target = 0; from >> source & 1 && target < graph.node_count; target++) {
            if (has_edge(source, target, unused_flags))
                next |= (node_set)1 << target;
        }
    }
    return next;
}

/* Returns the distance from one root, by growing the set of nodes that are near. */
static uint32_t distance_from(uint64_t root, uint32_t node, unsigned unused_flags)
{
    node_set reached = 0;
    if (!(graph.root_flags[root] & unused_flags))
        reached = (node_set)1 << graph.root_targets[root];
    for (uint32_t distance = 0; distance <= graph.node_count; distance++) {
        if (reached >> node & 1)
            return distance;
        reached = step(reached, unused_flags);
    }
    return GRAPH_NONE;
}

/* The root at the other end of the way that was found. Every step of that is one. */
static uint32_t root_of(uint32_t node, unsigned unused_flags)
{
    while (paths.distances[node] > 0) {
        uint32_t origin = paths.origins[node];
        cr_assert_eq(paths.distances[origin] + 1, paths.distances[node]);
        cr_assert(has_edge(origin, node, unused_flags));
        node = origin;
    }
    cr_assert(is_held_by(paths.origins[node], node, unused_flags));
    return paths.origins[node];
}

static void expect_shortest(uint32_t node, unsigned unused_flags)
{
    uint32_t nearest = GRAPH_NONE;
    uint32_t first_root = GRAPH_NONE;
    for (uint64_t root = 0; root < graph.root_count; root++) {
        uint32_t distance = distance_from(root, node, unused_flags);
        if (distance >= nearest)
            continue;
        nearest = distance;
        first_root = (uint32_t)root;
    }
    cr_assert_eq(paths.distances[node], nearest);
    if (nearest == GRAPH_NONE)
        cr_assert_eq(paths.origins[node], GRAPH_NONE);
    else
        cr_assert_eq(root_of(node, unused_flags), first_root);
}

Test(paths, of_random_graphs_are_as_short_as_can_be)
{
    struct entropy entropy = entropy_of_seed(1);
    for (unsigned i = 0; i < GRAPHS / 4; i++) {
        cr_assert(random_graph(&graph, &entropy));
        unsigned unused_flags = entropy_pick(&entropy, 8);
        cr_assert_eq(graph_paths_find(&graph, unused_flags, &paths), TTD_OK);
        for (uint32_t node = 0; node < graph.node_count; node++)
            expect_shortest(node, unused_flags);
        forget();
    }
}

Test(paths, turned_around_have_each_edge_and_root_once)
{
    struct entropy entropy = entropy_of_seed(2);
    for (unsigned i = 0; i < GRAPHS; i++) {
        cr_assert(random_graph(&graph, &entropy));
        cr_assert_eq(graph_reverse_init(&reverse, &graph), TTD_OK);
        uint64_t edge = 0;
        uint64_t root = 0;
        for (uint32_t target = 0; target < graph.node_count; target++) {
            cr_assert_eq(reverse.first[target], edge);
            cr_assert_eq(reverse.first_root[target], root);
            for (uint32_t source = 0; source < graph.node_count; source++) {
                for (uint64_t j = graph.first[source]; j < graph.first[source + 1]; j++) {
                    if (graph.targets[j] == target)
                        cr_assert_eq(reverse.sources[edge++], source);
                }
            }
            for (uint32_t j = 0; j < graph.root_count; j++) {
                if (graph.root_targets[j] == target)
                    cr_assert_eq(reverse.roots[root++], j);
            }
        }
        cr_assert_eq(reverse.first[graph.node_count], edge);
        cr_assert_eq(reverse.first_root[graph.node_count], root);
        cr_assert_eq(edge, graph.edge_count);
        cr_assert_eq(root, graph.root_count);
        forget();
    }
}

/* Hostile shapes. */

enum { MANY = 10000000 };

static void make_chain(uint32_t length)
{
    cr_assert_eq(graph_init(&graph, length), TTD_OK);
    for (uint32_t node = 0; node + 1 < length; node++)
        cr_assert_eq(graph_add_edge(&graph, node, node + 1, 0), TTD_OK);
    cr_assert_eq(graph_add_root(&graph, 0, 0, 0), TTD_OK);
    graph_finish(&graph);
}

Test(paths, through_a_chain_of_ten_million_blocks)
{
    cpu_limit(120);
    make_chain(MANY);
    cr_assert_eq(graph_paths_find(&graph, 0, &paths), TTD_OK);
    cr_assert_eq(graph_reverse_init(&reverse, &graph), TTD_OK);
    cr_assert_eq(paths.distances[MANY - 1], MANY - 1);
    cr_assert_eq(reverse.sources[reverse.first[MANY - 1]], MANY - 2);
}

Test(paths, from_ten_million_blocks_to_one)
{
    cpu_limit(120);
    cr_assert_eq(graph_init(&graph, MANY), TTD_OK);
    for (uint32_t node = 1; node < MANY; node++) {
        cr_assert_eq(graph_add_edge(&graph, node, 0, 0), TTD_OK);
        cr_assert_eq(graph_add_edge(&graph, node, node - 1, 0), TTD_OK);
    }
    cr_assert_eq(graph_add_root(&graph, MANY - 1, 0, 0), TTD_OK);
    graph_finish(&graph);
    cr_assert_eq(graph_paths_find(&graph, 0, &paths), TTD_OK);
    cr_assert_eq(graph_reverse_init(&reverse, &graph), TTD_OK);
    cr_assert_eq(paths.origins[0], MANY - 1);
    /* Node 1 has two edges to it. */
    cr_assert_eq(reverse.first[1] - reverse.first[0], MANY);
}

enum { SOME = 1000000 };

static int find_some(void)
{
    enum ttd_status status = graph_paths_find(&graph, 0, &paths);
    if (status == TTD_OK)
        status = graph_reverse_init(&reverse, &graph);
    if (status == TTD_OK)
        cr_assert_eq(reverse.sources[reverse.first[SOME - 1]], SOME - 2);
    else
        cr_assert_eq(status, TTD_ERROR_NO_MEMORY);
    graph_reverse_free(&reverse);
    graph_paths_free(&paths);
    return status == TTD_OK;
}

Test(paths, are_not_found_without_memory)
{
    make_chain(SOME);
    cr_assert_gt(memory_limit_try(find_some), 40);
}
