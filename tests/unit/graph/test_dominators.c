/* SPDX-License-Identifier: MIT */
/* Dominators and what they retain, against taking each node away and marking anew. */
#include <criterion/criterion.h>

#include "graph/dominators.h"
#include "support/cpu_limit.h"
#include "support/heap/random_graph.h"
#include "support/memory_limit.h"

#define GRAPHS     20000
#define GROUPS_MAX 3

static struct graph graph;
static struct graph_classes classes;
static struct graph_dominators dominators;
static struct graph_dominators_query query;

static void forget(void)
{
    graph_dominators_free(&dominators);
    graph_classes_free(&classes);
    graph_free(&graph);
    query = (struct graph_dominators_query){0};
}

TestSuite(dominators, .fini = forget);

/* Against brute force. */

static uint64_t sizes[RANDOM_GRAPH_NODES];
static uint32_t root_groups[RANDOM_GRAPH_NODES];

static void make_random(struct entropy *entropy)
{
    cr_assert(random_graph(&graph, entropy));
    for (uint32_t node = 0; node < graph.node_count; node++)
        sizes[node] = entropy_below(entropy, 1000);
    if (entropy_pick(entropy, 2)) {
        cr_assert_eq(graph_classify(&graph, &classes), TTD_OK);
        query.classes = &classes;
    }
    if (entropy_pick(entropy, 2)) {
        query.group_count = 1 + entropy_pick(entropy, GROUPS_MAX);
        for (uint64_t i = 0; i < graph.root_count; i++)
            root_groups[i] = entropy_pick(entropy, query.group_count);
        query.groups = root_groups;
    }
    cr_assert_eq(graph_dominate(&graph, &query, sizes, &dominators), TTD_OK);
}

/* Returns the nodes that are reached when a node of the tree is taken away. */
static node_set reached_without(uint32_t removed)
{
    node_set held = 0;
    if (removed == dominators.count - 1)
        return 0;
    for (uint64_t i = 0; i < graph.root_count; i++) {
        if (!query.groups || graph.node_count + query.groups[i] != removed)
            held |= (node_set)1 << graph.root_targets[i];
    }
    for (uint32_t node = 0; query.classes && node < graph.node_count; node++) {
        if (graph_class_of(query.classes, node) == GRAPH_DEFINITELY_LOST)
            held |= (node_set)1 << node;
    }
    return random_graph_closure(&graph, held, 0,
                                removed < graph.node_count ? (node_set)1 << removed : 0);
}

static unsigned count_of(node_set set)
{
    return (unsigned)__builtin_popcount(set);
}

static uint64_t bytes_of(node_set set)
{
    uint64_t bytes = 0;
    for (; set; set &= set - 1)
        bytes += sizes[__builtin_ctz(set)];
    return bytes;
}

/* By node of the tree: the blocks that are not reached without it. */
static node_set retained[RANDOM_GRAPH_NODES + GROUPS_MAX + 1];

static void take_each_away(void)
{
    node_set all = reached_without(GRAPH_NONE);
    for (uint32_t node = 0; node < dominators.count; node++)
        retained[node] = all & ~reached_without(node);
}

/* The parent is the one that retains least, of those that dominate; groups and the top may retain
 * the same as a block below them. */
static uint32_t parent_of(uint32_t node)
{
    uint32_t best = GRAPH_NONE;
    for (uint32_t other = 0; other < dominators.count; other++) {
        if (other != node && retained[other] >> node & 1 &&
            (best == GRAPH_NONE || count_of(retained[other]) < count_of(retained[best])))
            best = other;
    }
    return best;
}

static void expect_node(uint32_t node)
{
    bool is_upper = node >= graph.node_count;
    bool is_reached = is_upper || retained[node];
    cr_assert_eq(graph_retained_blocks(&dominators, node), count_of(retained[node]));
    cr_assert_eq(dominators.bytes[node], bytes_of(retained[node]));
    if (!is_reached) {
        cr_assert_eq(dominators.parents[node], GRAPH_NONE);
        cr_assert_eq(dominators.ranks[node], GRAPH_NONE);
        cr_assert_eq(dominators.extents[node], 0);
        return;
    }
    cr_assert_eq(dominators.order[dominators.ranks[node]], node);
    if (!is_upper)
        cr_assert_eq(dominators.parents[node], parent_of(node));
    else
        cr_assert_eq(dominators.parents[node],
                     node == dominators.count - 1 ? GRAPH_NONE : dominators.count - 1);
    /* All that it retains follows it. */
    for (uint32_t i = 0; i < dominators.extents[node]; i++) {
        uint32_t below = dominators.order[dominators.ranks[node] + i];
        cr_assert(below >= graph.node_count || retained[node] >> below & 1);
    }
}

static void expect_children(uint32_t node)
{
    uint32_t expected = 0;
    uint32_t children = 0;
    uint32_t cursor = 0;
    uint32_t child;
    for (uint32_t other = 0; other < dominators.count; other++)
        expected += dominators.parents[other] == node;
    while ((child = graph_dominators_child(&dominators, node, &cursor)) != GRAPH_NONE) {
        cr_assert_eq(dominators.parents[child], node);
        children++;
    }
    cr_assert_eq(children, expected);
}

Test(dominators, of_random_graphs_are_those_without_which_nothing_is_reached)
{
    struct entropy entropy = entropy_of_seed(1);
    for (unsigned i = 0; i < GRAPHS; i++) {
        make_random(&entropy);
        cr_assert_eq(dominators.count, graph.node_count + query.group_count + 1);
        take_each_away();
        for (uint32_t node = 0; node < dominators.count; node++) {
            expect_node(node);
            expect_children(node);
        }
        cr_assert_eq(dominators.reached,
                     query.group_count + 1 + count_of(reached_without(GRAPH_NONE)));
        if (query.classes)
            cr_assert_eq(dominators.reached, dominators.count);
        forget();
    }
}

Test(dominators, of_random_groups_retain_each_block_once)
{
    struct entropy entropy = entropy_of_seed(2);
    for (unsigned i = 0; i < GRAPHS; i++) {
        uint32_t groups[RANDOM_GRAPH_NODES];
        node_set expected[4] = {0};
        struct graph_retained sums[4];
        make_random(&entropy);
        take_each_away();
        for (uint32_t node = 0; node < graph.node_count; node++) {
            unsigned group = entropy_pick(&entropy, 5);
            groups[node] = group < 4 ? group : GRAPH_NONE;
            if (group < 4)
                expected[group] |= retained[node];
        }
        cr_assert_eq(graph_retained_by_group(&dominators, groups, 4, sums), TTD_OK);
        for (unsigned group = 0; group < 4; group++) {
            cr_assert_eq(sums[group].blocks, count_of(expected[group]));
            cr_assert_eq(sums[group].bytes, bytes_of(expected[group]));
        }
        forget();
    }
}

/* By hand. */

static void begin(uint32_t nodes)
{
    cr_assert_eq(graph_init(&graph, nodes), TTD_OK);
}

static void edge(uint32_t source, uint32_t target)
{
    cr_assert_eq(graph_add_edge(&graph, source, target, 0), TTD_OK);
}

static void root(uint32_t target)
{
    cr_assert_eq(graph_add_root(&graph, target, 0, 0), TTD_OK);
}

/* So many that recursion would overflow the stack, and quadratic time the limits below. */
enum { MANY = 2000000 };

static const uint64_t *ones(void)
{
    static uint64_t array[MANY];
    if (!array[0]) {
        for (uint32_t node = 0; node < MANY; node++)
            array[node] = 1;
    }
    return array;
}

static void dominate(void)
{
    graph_finish(&graph);
    cr_assert_eq(graph_dominate(&graph, &query, ones(), &dominators), TTD_OK);
}

static void expect(uint32_t node, uint32_t parent, uint32_t blocks)
{
    cr_assert_eq(dominators.parents[node], parent);
    cr_assert_eq(graph_retained_blocks(&dominators, node), blocks);
    cr_assert_eq(dominators.bytes[node], blocks);
}

Test(dominators, of_no_nodes_are_the_top_alone)
{
    begin(0);
    dominate();
    cr_assert_eq(dominators.count, 1);
    expect(0, GRAPH_NONE, 0);
}

Test(dominators, are_groups_whose_roots_alone_hold_a_block)
{
    /* Group 1 has two roots to 2; both groups hold 1. */
    begin(3);
    root(0);
    root(1);
    root(1);
    root(2);
    root(2);
    query.groups = (const uint32_t[]){0, 0, 1, 1, 1};
    query.group_count = 2;
    dominate();
    expect(0, 3, 1);
    expect(1, 5, 1);
    expect(2, 4, 1);
    expect(3, 5, 1);
    expect(4, 5, 1);
    expect(5, GRAPH_NONE, 3);
}

Test(dominators, retain_at_most_the_largest_number_of_bytes)
{
    begin(3);
    edge(0, 1);
    edge(0, 2);
    root(0);
    graph_finish(&graph);
    const uint64_t large[] = {1, UINT64_MAX - 1, 5};
    cr_assert_eq(graph_dominate(&graph, &query, large, &dominators), TTD_OK);
    cr_assert_eq(dominators.bytes[0], UINT64_MAX);
    struct graph_retained sums[1];
    cr_assert_eq(
        graph_retained_by_group(&dominators, (const uint32_t[]){GRAPH_NONE, 0, 0}, 1, sums),
        TTD_OK);
    cr_assert_eq(sums[0].bytes, UINT64_MAX);
}

/* Hostile shapes. */

Test(dominators, of_a_chain_of_two_million_blocks)
{
    cpu_limit(120);
    begin(MANY);
    for (uint32_t node = 0; node + 1 < MANY; node++)
        edge(node, node + 1);
    root(0);
    dominate();
    expect(0, MANY, MANY);
    expect(MANY - 1, MANY - 2, 1);
}

Test(dominators, of_a_doubly_linked_list_held_at_both_ends)
{
    cpu_limit(20);
    enum { LENGTH = 200000 };
    begin(LENGTH);
    for (uint32_t node = 0; node < LENGTH; node++) {
        if (node > 0)
            edge(node, node - 1);
        if (node + 1 < LENGTH)
            edge(node, node + 1);
    }
    root(0);
    root(LENGTH - 1);
    dominate();
    expect(LENGTH / 2, LENGTH, 1);
    expect(LENGTH, GRAPH_NONE, LENGTH);
}

Test(dominators, of_two_million_edges_to_one_block)
{
    cpu_limit(120);
    begin(MANY);
    root(5);
    for (uint32_t node = 0; node < MANY; node++) {
        root(node);
        edge(node, 5);
    }
    dominate();
    expect(5, MANY, 1);
    expect(MANY - 1, MANY, 1);
}

Test(dominators, of_a_star_and_back)
{
    cpu_limit(120);
    enum { RAYS = 1000000 };
    begin(RAYS + 1);
    for (uint32_t ray = 1; ray <= RAYS; ray++)
        edge(0, ray);
    for (uint32_t ray = 1; ray <= RAYS; ray++)
        edge(ray, 0);
    root(0);
    root(RAYS);
    dominate();
    expect(0, RAYS + 1, RAYS);
    expect(1, 0, 1);
    expect(RAYS, RAYS + 1, 1);
}

Test(dominators, of_two_thousand_blocks_that_all_point_at_all)
{
    cpu_limit(60);
    begin(2000);
    for (uint32_t i = 0; i < 2000 * 2000; i++)
        edge(i / 2000, i % 2000);
    root(7);
    dominate();
    expect(7, 2000, 2000);
    expect(1999, 7, 1);
}

/* Every block of a chain points at all that follow in steps of a power of two, and back at the
 * first: long paths that are shortened again and again. */
Test(dominators, of_a_chain_with_shortcuts)
{
    cpu_limit(60);
    enum { LENGTH = 1 << 19 };
    begin(LENGTH);
    for (uint32_t node = 0; node < LENGTH; node++) {
        for (uint32_t step = 1; node + step < LENGTH; step *= 2)
            edge(node, node + step);
        edge(node, node / 2);
    }
    root(1);
    dominate();
    expect(1, LENGTH, LENGTH);
    expect(0, 1, 1);
    expect(2, 1, 1);
    expect(LENGTH - 1, 1, 1);
}

enum { SOME = 1000000 };

static int dominate_some(void)
{
    enum ttd_status status = graph_dominate(&graph, &query, ones(), &dominators);
    if (status == TTD_OK)
        expect(0, dominators.count - 1, SOME);
    else
        cr_assert_eq(status, TTD_ERROR_NO_MEMORY);
    graph_dominators_free(&dominators);
    return status == TTD_OK;
}

Test(dominators, are_not_found_without_memory)
{
    static uint32_t own_groups[SOME];
    begin(SOME);
    ones();
    for (uint32_t node = 0; node + 1 < SOME; node++) {
        edge(node, 0);
        edge(node, node + 1);
        own_groups[node] = node;
        root(0);
    }
    graph_finish(&graph);
    query.groups = own_groups;
    query.group_count = SOME;
    cr_assert_gt(memory_limit_try(dominate_some), 40);
}
