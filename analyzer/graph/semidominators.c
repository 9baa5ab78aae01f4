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

#include "base/halves.h"
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
    /* By number. While a node is not finished, `above` is the place of its first source. */
    struct link *links;
    /* Sources of edges from higher nodes, in the order of the targets' numbers. */
    uint32_t *sources;
    uint32_t source_count;
};

/* Allots places to the sources of all nodes. visits[].later_sources becomes the place behind the
 * last one. */
static uint32_t allot_sources(const struct spanning_tree *tree, struct link *links)
{
    uint32_t sum = 0;
    for (uint32_t number = 0; number < tree->reached; number++) {
        if (tree->reached - number > AHEAD)
            __builtin_prefetch(&tree->visits[tree->nodes[number + AHEAD]], 1);
        struct graph_visit *visit = &tree->visits[tree->nodes[number]];
        links[number].above = sum;
        sum += visit->later_sources;
        visit->later_sources = sum;
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

/* Puts the sources of some targets in their places, from the last one to the first. */
static enum ttd_status sort_sources(void *context, size_t begin, size_t end)
{
    const struct finder *finder = context;
    struct graph_visit *visits = finder->tree->visits;
    for (uint32_t node = 0; node < finder->tree->node_count; node++) {
        uint32_t number = visits[node].number;
        if (number == 0)
            continue;
        struct edge_range edges = graph_edges_of(finder->graph, finder->upper, node);
        for (; edges.next < edges.end; edges.next++) {
            uint32_t target = edges.targets[edges.next];
            prefetch_target(finder, edges);
            if (target >= begin && target < end && visits[target].number < number)
                finder->sources[--visits[target].later_sources] = number;
        }
    }
    return TTD_OK;
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

/* Prefetches the link of a source that follows soon, and of one that follows sooner the link above.
 * A source that is not finished has a place there, which may be no node. */
static inline __attribute__((always_inline)) void prefetch_links(const struct finder *finder,
                                                                 uint32_t i)
{
    if (i < 2 * AHEAD)
        return;
    __builtin_prefetch(&finder->links[finder->sources[i - 2 * AHEAD]], 1);
    uint32_t above = finder->links[finder->sources[i - AHEAD]].above;
    if (above < finder->tree->reached)
        __builtin_prefetch(&finder->links[above]);
}

/* Sets `earliest` of each node to its semidominator. */
static void find_semidominators(const struct finder *finder)
{
    const struct spanning_tree *tree = finder->tree;
    uint32_t end = finder->source_count;
    for (uint32_t number = tree->reached - 1; number > 0; number--) {
        uint32_t lowest = tree->earliest[number];
        uint32_t begin = finder->links[number].above;
        for (uint32_t i = end; i-- > begin;) {
            prefetch_links(finder, i);
            uint32_t candidate = lowest_above(finder->links, finder->sources[i], number);
            if (candidate < lowest)
                lowest = candidate;
        }
        end = begin;
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
    finder.links = array_new(tree->reached, sizeof *finder.links);
    if (finder.links) {
        finder.source_count = allot_sources(tree, finder.links);
        finder.sources = array_new(finder.source_count, sizeof *finder.sources);
    }
    bool has_memory = finder.sources;
    if (has_memory) {
        (void)halves_do(sort_sources, &finder, &finder, tree->node_count);
        find_semidominators(&finder);
    }
    array_free(finder.sources, finder.source_count, sizeof *finder.sources);
    array_free(finder.links, tree->reached, sizeof *finder.links);
    if (has_memory)
        find_dominators(tree);
    spanning_tree_trim(tree);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}
