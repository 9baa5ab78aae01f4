/* SPDX-License-Identifier: MIT */
/* Classes of blocks, against closures and against a model of what memcheck does. */
#include <criterion/criterion.h>

#include "graph/graph_classes.h"
#include "support/cpu_limit.h"
#include "support/entropy.h"
#include "support/heap/random_graph.h"
#include "support/memory_limit.h"

#define GRAPHS 20000

static struct graph graph;
static struct graph_classes classes;

static void finish(void)
{
    graph_classes_free(&classes);
    graph_free(&graph);
}

TestSuite(classes, .fini = finish);

static void begin(uint32_t nodes)
{
    cr_assert_eq(graph_init(&graph, nodes), TTD_OK);
}

static void edge(uint32_t source, uint32_t target)
{
    cr_assert_eq(graph_add_edge(&graph, source, target, 0), TTD_OK);
}

static void root(uint32_t target, unsigned flags)
{
    cr_assert_eq(graph_add_root(&graph, target, flags, 0), TTD_OK);
}

static void classify(void)
{
    graph_finish(&graph);
    cr_assert_eq(graph_classify(&graph, &classes), TTD_OK);
}

static void expect(uint32_t node, enum graph_class class, enum graph_holding holding)
{
    cr_assert_eq(graph_class_of(&classes, node), class, "class of node %u", node);
    cr_assert_eq(graph_holding_of(&classes, node), holding, "holding of node %u", node);
}

static void expect_lost(uint32_t node, uint32_t leader)
{
    expect(node, node == leader ? GRAPH_DEFINITELY_LOST : GRAPH_INDIRECTLY_LOST, GRAPH_HELD);
    cr_assert_eq(classes.leaders[node], leader, "leader of node %u: %u", node,
                 classes.leaders[node]);
}

/* The set of nodes of one class and one holding. */
static node_set found(enum graph_class class, enum graph_holding holding)
{
    node_set nodes = 0;
    for (uint32_t node = 0; node < graph.node_count; node++) {
        if (graph_class_of(&classes, node) == class && graph_holding_of(&classes, node) == holding)
            nodes |= (node_set)1 << node;
    }
    return nodes;
}

static node_set reached(unsigned unused_flags)
{
    return random_graph_closure(&graph, random_graph_held(&graph, unused_flags), unused_flags, 0);
}

static void expect_verdicts_of_closures(void)
{
    node_set live = reached(GRAPH_INTERIOR | GRAPH_WEAK | GRAPH_STALE);
    node_set weak = reached(GRAPH_INTERIOR | GRAPH_STALE);
    node_set reachable = reached(GRAPH_INTERIOR);
    node_set live_by_any = reached(GRAPH_WEAK | GRAPH_STALE) & ~reachable;
    node_set weak_by_any = reached(GRAPH_STALE) & ~reachable;
    node_set possible = reached(0) & ~reachable;
    cr_assert_eq(found(GRAPH_REACHABLE, GRAPH_HELD), live);
    cr_assert_eq(found(GRAPH_REACHABLE, GRAPH_HELD_WEAKLY), weak & ~live);
    cr_assert_eq(found(GRAPH_REACHABLE, GRAPH_HELD_BY_STALE), reachable & ~weak);
    cr_assert_eq(found(GRAPH_POSSIBLY_LOST, GRAPH_HELD), live_by_any);
    cr_assert_eq(found(GRAPH_POSSIBLY_LOST, GRAPH_HELD_WEAKLY), weak_by_any & ~live_by_any);
    cr_assert_eq(found(GRAPH_POSSIBLY_LOST, GRAPH_HELD_BY_STALE), possible & ~weak_by_any);
}

/* The nodes that lead to `node`, and are lost. */
static node_set leading_to(uint32_t node, node_set lost)
{
    node_set leading = 0;
    for (uint32_t other = 0; other < graph.node_count; other++) {
        node_set own = (node_set)1 << other & lost;
        if (random_graph_closure(&graph, own, 0, ~lost) >> node & 1)
            leading |= own;
    }
    return leading;
}

/* A lost node is directly lost if it leads to all that lead to it; of those the lowest is. */
static void expect_leaders_of_closures(void)
{
    node_set lost = ~reached(0);
    for (uint32_t node = 0; node < graph.node_count; node++) {
        if (!(lost >> node & 1)) {
            cr_assert(!classes.leaders || classes.leaders[node] == GRAPH_NONE);
            continue;
        }
        node_set leading = leading_to(node, lost);
        node_set below = random_graph_closure(&graph, (node_set)1 << node, 0, ~lost);
        bool is_definite = !(leading & ~below) && (leading & -leading) >> node == 1;
        expect(node, is_definite ? GRAPH_DEFINITELY_LOST : GRAPH_INDIRECTLY_LOST, GRAPH_HELD);
        uint32_t leader = classes.leaders[node];
        cr_assert_eq(leader == node, is_definite);
        cr_assert(leading >> leader & 1);
        cr_assert_eq(classes.leaders[leader], leader);
    }
}

Test(classes, of_random_graphs_are_those_of_closures)
{
    struct entropy entropy = entropy_of_seed(1);
    for (unsigned i = 0; i < GRAPHS; i++) {
        cr_assert(random_graph(&graph, &entropy));
        cr_assert_eq(graph_classify(&graph, &classes), TTD_OK);
        expect_verdicts_of_closures();
        expect_leaders_of_closures();
        finish();
    }
}

/* Takes the flag GRAPH_STALE from some of the edges. */
static void trust_edges(struct entropy *entropy)
{
    for (uint64_t i = 0; i < graph.edge_count; i++) {
        if (entropy_below(entropy, 2))
            graph.flags[i] &= (uint8_t)~GRAPH_STALE;
    }
}

Test(classes, are_those_of_closures_after_edges_turned_out_not_stale)
{
    struct entropy entropy = entropy_of_seed(3);
    unsigned changed = 0;
    for (unsigned i = 0; i < GRAPHS; i++) {
        cr_assert(random_graph(&graph, &entropy));
        cr_assert_eq(graph_classes_mark(&graph, &classes), TTD_OK);
        node_set held = found(GRAPH_REACHABLE, GRAPH_HELD);
        trust_edges(&entropy);
        cr_assert_eq(graph_classes_mark_trusted(&graph, &classes), TTD_OK);
        expect_verdicts_of_closures();
        changed += found(GRAPH_REACHABLE, GRAPH_HELD) != held;
        finish();
    }
    cr_assert_gt(changed, GRAPHS / 40, "changed: %u", changed);
}

/* Follows memcheck's treatment of lost blocks, word by word: each in turn scans the blocks that it
 * leads to and that were not reached; one that was a leader before brings along its blocks. */
static void collect_as_memcheck(node_set lost, uint32_t *leaders)
{
    bool is_indirect[RANDOM_GRAPH_NODES] = {false};
    for (uint32_t node = 0; node < graph.node_count; node++)
        leaders[node] = lost >> node & 1 ? node : GRAPH_NONE;
    for (uint32_t node = 0; node < graph.node_count; node++) {
        uint32_t stack[RANDOM_GRAPH_NODES];
        unsigned depth = 0;
        if (leaders[node] == GRAPH_NONE || is_indirect[node])
            continue;
        stack[depth++] = node;
        while (depth) {
            uint32_t source = stack[--depth];
            for (uint64_t i = graph.first[source]; i < graph.first[source + 1]; i++) {
                uint32_t target = graph.targets[i];
                if (target == node || leaders[target] == GRAPH_NONE || is_indirect[target])
                    continue;
                is_indirect[target] = true;
                for (uint32_t other = 0; other < graph.node_count; other++) {
                    if (leaders[other] == target)
                        leaders[other] = node;
                }
                stack[depth++] = target;
            }
        }
    }
}

/* Whether some lost cycle is entered from another lost block. */
static bool has_cycle_below(node_set lost)
{
    for (uint32_t node = 0; node < graph.node_count; node++) {
        if (!(lost >> node & 1))
            continue;
        node_set leading = leading_to(node, lost);
        node_set below = random_graph_closure(&graph, (node_set)1 << node, 0, ~lost);
        node_set cycle = leading & below;
        if (cycle != (node_set)1 << node && leading & ~below)
            return true;
    }
    return false;
}

Test(classes, of_lost_blocks_belong_to_those_that_memcheck_gives_them_to)
{
    struct entropy entropy = entropy_of_seed(2);
    unsigned equal = 0;
    unsigned others = 0;
    for (unsigned i = 0; i < GRAPHS; i++) {
        uint32_t leaders[RANDOM_GRAPH_NODES];
        cr_assert(random_graph(&graph, &entropy));
        graph.root_count /= 3;
        cr_assert_eq(graph_classify(&graph, &classes), TTD_OK);
        node_set lost = ~reached(0);
        collect_as_memcheck(lost, leaders);
        bool is_equal = true;
        for (uint32_t node = 0; classes.leaders && node < graph.node_count; node++) {
            /* Whatever is definitely lost here is so there. */
            cr_assert(classes.leaders[node] != node || leaders[node] == node);
            is_equal &= classes.leaders[node] == leaders[node];
        }
        equal += is_equal && classes.leaders;
        others += !is_equal;
        cr_assert(is_equal || has_cycle_below(lost));
        finish();
    }
    cr_assert_gt(equal, GRAPHS / 2, "%u equal, %u others", equal, others);
    cr_assert_gt(others, 0, "the difference is not met");
}

Test(classes, of_a_cycle_below_a_later_block_are_not_both_definite)
{
    /* Memcheck calls 0 and 2 definitely lost: when it comes to 2, 1 belongs to 0 already. */
    begin(3);
    edge(0, 1);
    edge(1, 0);
    edge(2, 1);
    classify();
    expect_lost(0, 2);
    expect_lost(1, 2);
    expect_lost(2, 2);
}

Test(classes, of_a_block_that_two_lost_ones_hold_is_that_of_the_first)
{
    begin(4);
    edge(0, 2);
    edge(1, 2);
    edge(2, 3);
    classify();
    expect_lost(0, 0);
    expect_lost(1, 1);
    expect_lost(2, 0);
    expect_lost(3, 0);
}

Test(classes, of_a_leader_that_is_taken_over_go_along)
{
    /* 3 leads to 0, which has 1; 2 leads to 1 and comes too late for it. */
    begin(4);
    edge(0, 1);
    edge(2, 1);
    edge(3, 0);
    classify();
    expect_lost(0, 3);
    expect_lost(1, 3);
    expect_lost(2, 2);
    expect_lost(3, 3);
}

Test(classes, tell_what_only_weak_roots_and_stale_words_hold)
{
    begin(6);
    edge(0, 5);
    cr_assert_eq(graph_add_edge(&graph, 0, 1, GRAPH_STALE), TTD_OK);
    edge(2, 3);
    edge(2, 5);
    edge(4, 3);
    root(0, 0);
    root(2, GRAPH_WEAK);
    root(4, GRAPH_WEAK | GRAPH_INTERIOR);
    classify();
    expect(0, GRAPH_REACHABLE, GRAPH_HELD);
    expect(1, GRAPH_REACHABLE, GRAPH_HELD_BY_STALE);
    expect(2, GRAPH_REACHABLE, GRAPH_HELD_WEAKLY);
    expect(3, GRAPH_REACHABLE, GRAPH_HELD_WEAKLY);
    expect(4, GRAPH_POSSIBLY_LOST, GRAPH_HELD_WEAKLY);
    expect(5, GRAPH_REACHABLE, GRAPH_HELD);
    cr_assert_null(classes.leaders);
}

Test(classes, of_no_blocks_are_none)
{
    begin(0);
    classify();
    cr_assert_null(classes.leaders);
}

/* Hostile shapes. */

enum { MANY = 10000000 };

Test(classes, of_a_chain_of_ten_million_blocks)
{
    cpu_limit(120);
    begin(MANY);
    for (uint32_t node = 0; node + 1 < MANY; node++)
        edge(node, node + 1);
    classify();
    expect_lost(0, 0);
    expect_lost(MANY - 1, 0);
    graph_classes_free(&classes);

    root(0, GRAPH_STALE);
    classify();
    expect(MANY - 1, GRAPH_REACHABLE, GRAPH_HELD_BY_STALE);
}

Test(classes, of_a_chain_that_ends_at_the_lowest_block)
{
    cpu_limit(120);
    begin(MANY);
    for (uint32_t node = 1; node < MANY; node++)
        edge(node, node - 1);
    classify();
    expect_lost(0, MANY - 1);
    expect_lost(MANY / 2, MANY - 1);
}

Test(classes, of_a_ring_of_ten_million_blocks)
{
    cpu_limit(120);
    begin(MANY);
    for (uint32_t node = 0; node < MANY; node++)
        edge(node, (node + 1) % MANY);
    classify();
    expect_lost(0, 0);
    expect_lost(MANY - 1, 0);
}

Test(classes, of_ten_million_edges_to_one_block)
{
    cpu_limit(120);
    begin(MANY);
    for (uint32_t node = 0; node < MANY; node++)
        edge(node, 3);
    classify();
    expect_lost(0, 0);
    expect_lost(3, 0);
    expect_lost(MANY - 1, MANY - 1);
}

Test(classes, of_ten_million_edges_of_one_block)
{
    cpu_limit(120);
    begin(1000);
    for (uint32_t i = 0; i < MANY; i++)
        edge(500, i % 1000);
    classify();
    expect_lost(0, 500);
    expect_lost(999, 500);
}

Test(classes, of_two_thousand_blocks_that_all_point_at_all)
{
    cpu_limit(120);
    begin(2000);
    for (uint32_t i = 0; i < 2000 * 2000; i++)
        edge(i / 2000, i % 2000);
    classify();
    expect_lost(1999, 0);
}

Test(classes, of_a_doubly_linked_list_held_at_both_ends)
{
    cpu_limit(120);
    enum { LENGTH = 200000 };
    begin(LENGTH);
    for (uint32_t node = 0; node < LENGTH; node++) {
        if (node > 0)
            edge(node, node - 1);
        if (node + 1 < LENGTH)
            edge(node, node + 1);
    }
    root(0, GRAPH_INTERIOR);
    root(LENGTH - 1, GRAPH_WEAK);
    classify();
    expect(LENGTH / 2, GRAPH_REACHABLE, GRAPH_HELD_WEAKLY);
}

enum { SOME = 1000000 };

static int classify_some(void)
{
    enum ttd_status status = graph_classify(&graph, &classes);
    if (status == TTD_OK)
        expect_lost(SOME - 1, 1);
    else
        cr_assert_eq(status, TTD_ERROR_NO_MEMORY);
    graph_classes_free(&classes);
    return status == TTD_OK;
}

Test(classes, are_not_found_without_memory)
{
    begin(SOME);
    for (uint32_t node = 1; node + 1 < SOME; node++)
        edge(node, node + 1);
    root(0, 0);
    graph_finish(&graph);
    cr_assert_gt(memory_limit_try(classify_some), 20);
}
