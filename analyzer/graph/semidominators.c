/* SPDX-License-Identifier: MIT */
/* Semi-NCA (Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems").
 *
 * The semidominator of a node is the lowest node from which a way leads to it on which all others
 * are higher than it. It is the lowest of the sources of its edges that are lower than it, and of
 * the semidominators of the nodes on the tree path to a higher source, those that are higher than
 * the node itself. Nodes are finished from the highest to the lowest, so that these are known. The
 * immediate dominator is the first that is not above the semidominator on the chain of the parent's
 * dominators.
 *
 * Lower sources are known from the search. Only edges from higher ones are sorted by target. */
#include "graph/semidominators.h"

#include "graph/arrays.h"

/* Nodes, or edges, between a prefetch and its use. */
#define AHEAD 16

/* A node that is finished, in the forest of these. */
struct link {
    /* A node above it in the tree, lower than all between the two. */
    uint32_t above;
    /* The lowest semidominator of the nodes from it up to `above`, that one excluded. */
    uint32_t lowest;
};

struct finder {
    struct spanning_tree *tree;
    const struct graph *graph;
    const struct graph_upper *upper;
    struct link *links;
    /* Sources of edges from higher nodes, by target. Those of a node end where those of the next
     * node begin: the last node is the top, and has none. visits[].later_sources becomes the place
     * of the first. */
    uint32_t *sources;
    uint32_t source_count;
};

/* Sums up the numbers of sources: a node's becomes the end of its sources. */
static uint32_t allot_sources(struct spanning_tree *tree)
{
    uint32_t sum = 0;
    for (uint32_t node = 0; node < tree->node_count; node++) {
        sum += tree->visits[node].later_sources;
        tree->visits[node].later_sources = sum;
    }
    return sum;
}

/* Prefetches a target that follows soon: the edges of all nodes of the graph lie one behind the
 * other. */
static inline __attribute__((always_inline)) void prefetch_target(const struct finder *finder,
                                                                  struct edge_range edges)
{
    const struct graph *graph = finder->graph;
    uint64_t edge = (uint64_t)edges.next + AHEAD;
    if (edges.targets == graph->targets && edge < graph->edge_count)
        __builtin_prefetch(&finder->tree->visits[graph->targets[edge]], 1);
}

/* Sorts the sources by target; the end of a node's sources becomes their begin. */
static void sort_sources(struct finder *finder)
{
    struct graph_visit *visits = finder->tree->visits;
    for (uint32_t node = 0; node < finder->tree->node_count; node++) {
        uint32_t number = visits[node].number;
        if (number == 0)
            continue;
        struct edge_range edges = graph_edges_of(finder->graph, finder->upper, node);
        for (; edges.next < edges.end; edges.next++) {
            prefetch_target(finder, edges);
            struct graph_visit *target = &visits[edges.targets[edges.next]];
            if (target->number < number)
                finder->sources[--target->later_sources] = number;
        }
    }
}

/* Finds the lowest semidominator on the tree path from a finished node up to the last one that is
 * higher than `number`. Shortens the path by half. */
static uint32_t lowest_above(struct link *links, uint32_t node, uint32_t number)
{
    uint32_t lowest = UINT32_MAX;
    for (;;) {
        struct link *link = &links[node];
        if (link->above > number) {
            const struct link *upper = &links[link->above];
            if (upper->lowest < link->lowest)
                link->lowest = upper->lowest;
            link->above = upper->above;
        }
        if (link->lowest < lowest)
            lowest = link->lowest;
        if (link->above <= number)
            return lowest;
        node = link->above;
    }
}

/* Prefetches what nodes to be finished soon need, each part when that before it is there. */
static inline __attribute__((always_inline)) void prefetch_sources(const struct finder *finder,
                                                                   uint32_t number)
{
    const struct spanning_tree *tree = finder->tree;
    if (number <= AHEAD)
        return;
    __builtin_prefetch(&tree->visits[tree->nodes[number - AHEAD]]);
    const struct graph_visit *visit = &tree->visits[tree->nodes[number - AHEAD / 2]];
    __builtin_prefetch(&finder->sources[visit->later_sources]);
    visit = &tree->visits[tree->nodes[number - AHEAD / 4]];
    if (visit->later_sources < visit[1].later_sources)
        __builtin_prefetch(&finder->links[finder->sources[visit->later_sources]], 1);
}

/* Sets `earliest` of each node to its semidominator. */
static void find_semidominators(const struct finder *finder)
{
    const struct spanning_tree *tree = finder->tree;
    for (uint32_t number = tree->reached - 1; number > 0; number--) {
        prefetch_sources(finder, number);
        const struct graph_visit *visit = &tree->visits[tree->nodes[number]];
        uint32_t lowest = tree->earliest[number];
        for (uint32_t i = visit->later_sources; i < visit[1].later_sources; i++) {
            uint32_t candidate = lowest_above(finder->links, finder->sources[i], number);
            if (candidate < lowest)
                lowest = candidate;
        }
        tree->earliest[number] = lowest;
        finder->links[number] = (struct link){tree->parents[number], lowest};
    }
}

static void find_dominators(struct spanning_tree *tree)
{
    for (uint32_t number = 1; number < tree->reached; number++) {
        uint32_t dominator = tree->parents[number];
        while (dominator > tree->earliest[number])
            dominator = tree->parents[dominator];
        tree->parents[number] = dominator;
    }
}

enum ttd_status graph_find_dominators(struct spanning_tree *tree, const struct graph *graph,
                                      const struct graph_upper *upper)
{
    struct finder finder = {.tree = tree, .graph = graph, .upper = upper};
    finder.source_count = allot_sources(tree);
    finder.sources = array_new(finder.source_count, sizeof *finder.sources);
    finder.links = array_new(tree->reached, sizeof *finder.links);
    bool has_memory = finder.sources && finder.links;
    if (has_memory) {
        sort_sources(&finder);
        find_semidominators(&finder);
    }
    array_free(finder.sources, finder.source_count, sizeof *finder.sources);
    array_free(finder.links, tree->reached, sizeof *finder.links);
    if (has_memory)
        find_dominators(tree);
    spanning_tree_trim(tree);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}
