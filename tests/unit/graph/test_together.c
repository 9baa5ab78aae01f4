/* SPDX-License-Identifier: MIT */
/* Retained sizes of groups, against taking each group away and marking anew. */
#include <criterion/criterion.h>

#include "graph/dominators.h"
#include "support/cpu_limit.h"
#include "support/heap/random_graph.h"

#define GRAPHS 20000

static struct graph graph;
static struct graph_dominators dominators;
static struct graph_dominators_query query;
static uint64_t sizes[RANDOM_GRAPH_NODES];

static void forget(void)
{
    graph_dominators_free(&dominators);
    graph_free(&graph);
}

TestSuite(together, .fini = forget);

static void make_random(struct entropy *entropy)
{
    cr_assert(random_graph(&graph, entropy));
    for (uint32_t node = 0; node < graph.node_count; node++)
        sizes[node] = entropy_below(entropy, 1000);
    cr_assert_eq(graph_dominate(&graph, &query, sizes, &dominators), TTD_OK);
}

static uint64_t bytes_of(node_set set)
{
    uint64_t bytes = 0;
    for (; set; set &= set - 1)
        bytes += sizes[__builtin_ctz(set)];
    return bytes;
}

/* Deletes all nodes of a group at once. */
static node_set held_by_group(const uint32_t *groups, uint32_t group)
{
    node_set held = 0, members = 0;
    for (uint64_t i = 0; i < graph.root_count; i++)
        held |= (node_set)1 << graph.root_targets[i];
    for (uint32_t node = 0; node < graph.node_count; node++)
        members |= (node_set)(groups[node] == group) << node;
    return random_graph_closure(&graph, held, 0, 0) &
           ~random_graph_closure(&graph, held, 0, members);
}

Test(together, random_groups_retain_what_is_lost_without_them)
{
    struct entropy entropy = entropy_of_seed(3);
    unsigned more = 0;
    for (unsigned i = 0; i < GRAPHS; i++) {
        uint32_t groups[RANDOM_GRAPH_NODES];
        struct graph_retained sums[3], alone[5];
        make_random(&entropy);
        for (uint32_t node = 0; node < graph.node_count; node++) {
            unsigned group = entropy_pick(&entropy, 6);
            groups[node] = group < 5 ? group : GRAPH_NONE;
        }
        struct graph_together together = {&dominators, groups, 1, 3, sizes};
        cr_assert_eq(graph_retained_by_group(&dominators, groups, 5, alone), TTD_OK);
        cr_assert_eq(graph_retained_together(&graph, &together, sums), TTD_OK);
        for (uint32_t group = 1; group < 4; group++) {
            node_set expected = held_by_group(groups, group);
            cr_assert_eq(sums[group - 1].blocks, (unsigned)__builtin_popcount(expected));
            cr_assert_eq(sums[group - 1].bytes, bytes_of(expected));
            more += sums[group - 1].blocks > alone[group].blocks;
        }
        forget();
    }
    cr_assert_gt(more, GRAPHS / 100);
}

/* A chain of which each group has every 64th block: all bits change at different places. */
Test(together, groups_along_a_chain)
{
    cpu_limit(60);
    enum { LENGTH = 1000000 };
    uint32_t *groups = malloc(LENGTH * sizeof *groups);
    struct graph_retained sums[GRAPH_TOGETHER_MAX];
    cr_assert_eq(graph_init(&graph, LENGTH), TTD_OK);
    for (uint32_t node = 0; node < LENGTH; node++) {
        groups[node] = node % GRAPH_TOGETHER_MAX;
        if (node + 1 < LENGTH)
            cr_assert_eq(graph_add_edge(&graph, node, node + 1, 0), TTD_OK);
    }
    cr_assert_eq(graph_add_root(&graph, 0, 0, 0), TTD_OK);
    graph_finish(&graph);
    uint64_t *bytes = calloc(LENGTH, sizeof *bytes);
    cr_assert_eq(graph_dominate(&graph, &query, bytes, &dominators), TTD_OK);
    struct graph_together together = {&dominators, groups, 0, GRAPH_TOGETHER_MAX, bytes};
    cr_assert_eq(graph_retained_together(&graph, &together, sums), TTD_OK);
    for (uint32_t group = 0; group < GRAPH_TOGETHER_MAX; group++)
        cr_assert_eq(sums[group].blocks, LENGTH - group);
    free(bytes);
    free(groups);
}

/* Roots of a group, and what they lead to, by marking from each group alone. */
Test(together, random_groups_of_roots_lead_to_what_is_marked_from_them)
{
    struct entropy entropy = entropy_of_seed(4);
    for (unsigned i = 0; i < GRAPHS; i++) {
        uint32_t groups[RANDOM_GRAPH_NODES];
        struct graph_retained direct[2], reached[2];
        make_random(&entropy);
        cr_assert_leq(graph.root_count, RANDOM_GRAPH_NODES);
        for (uint64_t root = 0; root < graph.root_count; root++)
            groups[root] = entropy_pick(&entropy, 4);
        struct graph_leading leading = {groups, 2, 2, sizes};
        cr_assert_eq(graph_reached_together(&graph, &leading, direct, reached), TTD_OK);
        for (uint32_t group = 2; group < 4; group++) {
            node_set held = 0;
            for (uint64_t root = 0; root < graph.root_count; root++)
                if (groups[root] == group)
                    held |= (node_set)1 << graph.root_targets[root];
            cr_assert_eq(direct[group - 2].blocks, (unsigned)__builtin_popcount(held));
            cr_assert_eq(direct[group - 2].bytes, bytes_of(held));
            held = random_graph_closure(&graph, held, 0, 0);
            cr_assert_eq(reached[group - 2].blocks, (unsigned)__builtin_popcount(held));
            cr_assert_eq(reached[group - 2].bytes, bytes_of(held));
        }
        forget();
    }
}
