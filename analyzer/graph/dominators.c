/* SPDX-License-Identifier: MIT */
#include "graph/dominators.h"

#include "graph/arrays.h"
#include "graph/semidominators.h"

/* Nodes between a prefetch and its use. */
#define AHEAD 16

/* Sums by number instead of by node: a dominator has a number near those of the nodes that it
 * dominates, mostly, so that the cache has both. */
struct sums {
    /* Nodes that a node dominates, itself included; then the next rank for a child of it. */
    uint32_t *extents;
    uint64_t *bytes;
};

/* Sums up from the bottom up: a dominator has a lower number. */
static void dominators_sum_up(const struct graph_dominators *dominators,
                              const struct spanning_tree *tree, const uint64_t *sizes,
                              struct sums *sums)
{
    for (uint32_t number = 0; number < tree->reached; number++) {
        uint32_t node = tree->nodes[number];
        if (tree->reached - number > AHEAD && tree->nodes[number + AHEAD] < dominators->node_count)
            __builtin_prefetch(&sizes[tree->nodes[number + AHEAD]]);
        sums->extents[number] = 1;
        sums->bytes[number] = node < dominators->node_count ? sizes[node] : 0;
    }
    for (uint32_t number = tree->reached - 1; number > 0; number--) {
        uint32_t parent = tree->parents[number];
        sums->extents[parent] += sums->extents[number];
        sums->bytes[parent] = add_saturated(sums->bytes[parent], sums->bytes[number]);
    }
}

/* Prefetches what will be written of a node soon. */
static inline __attribute__((always_inline)) void
dominators_prefetch(const struct graph_dominators *dominators, uint32_t node)
{
    __builtin_prefetch(&dominators->extents[node], 1);
    __builtin_prefetch(&dominators->bytes[node], 1);
    __builtin_prefetch(&dominators->parents[node], 1);
    __builtin_prefetch(&dominators->ranks[node], 1);
}

/* Lays the tree out, from the top down. The rank of a node is behind its parent, and behind what
 * the siblings with lower numbers dominate. */
static void lay_out(const struct graph_dominators *dominators, const struct spanning_tree *tree,
                    struct sums *sums)
{
    for (uint32_t number = 0; number < tree->reached; number++) {
        uint32_t node = tree->nodes[number];
        uint32_t rank = 0;
        if (tree->reached - number > AHEAD)
            dominators_prefetch(dominators, tree->nodes[number + AHEAD]);
        dominators->extents[node] = sums->extents[number];
        dominators->bytes[node] = sums->bytes[number];
        if (number > 0) {
            uint32_t *next = &sums->extents[tree->parents[number]];
            rank = *next;
            *next += sums->extents[number];
            dominators->parents[node] = tree->nodes[tree->parents[number]];
        }
        dominators->ranks[node] = rank;
        dominators->order[rank] = node;
        sums->extents[number] = rank + 1;
    }
}

static enum ttd_status allocate(struct graph_dominators *dominators)
{
    uint32_t count = dominators->count;
    dominators->parents = array_new(count, sizeof *dominators->parents);
    dominators->order = array_new(count, sizeof *dominators->order);
    dominators->ranks = array_new(count, sizeof *dominators->ranks);
    dominators->extents = array_new(count, sizeof *dominators->extents);
    dominators->bytes = array_new(count, sizeof *dominators->bytes);
    bool has_memory = dominators->parents && dominators->order && dominators->ranks &&
                      dominators->extents && dominators->bytes;
    for (uint32_t node = 0; has_memory && node < count; node++) {
        dominators->parents[node] = GRAPH_NONE;
        dominators->ranks[node] = GRAPH_NONE;
    }
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

static enum ttd_status make_tree(struct graph_dominators *dominators,
                                 const struct spanning_tree *tree, const uint64_t *sizes)
{
    dominators->count = tree->node_count;
    dominators->reached = tree->reached;
    struct sums sums = {.extents = array_new(tree->reached, sizeof *sums.extents),
                        .bytes = array_new(tree->reached, sizeof *sums.bytes)};
    enum ttd_status status = allocate(dominators);
    if (status == TTD_OK && !(sums.extents && sums.bytes))
        status = TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        dominators_sum_up(dominators, tree, sizes, &sums);
        lay_out(dominators, tree, &sums);
    }
    array_free(sums.extents, tree->reached, sizeof *sums.extents);
    array_free(sums.bytes, tree->reached, sizeof *sums.bytes);
    return status;
}

enum ttd_status graph_dominate(const struct graph *graph,
                               const struct graph_dominators_query *query, const uint64_t *sizes,
                               struct graph_dominators *dominators)
{
    *dominators = (struct graph_dominators){.node_count = graph->node_count};
    if (graph->edge_count > UINT32_MAX)
        return TTD_ERROR_NO_MEMORY;
    struct graph_upper upper;
    struct spanning_tree tree = {0};
    enum ttd_status status = graph_upper_init(&upper, graph, query);
    if (status == TTD_OK && upper.edge_count > UINT32_MAX - graph->edge_count)
        status = TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK)
        status = spanning_tree_init(&tree, graph, &upper);
    if (status == TTD_OK)
        status = graph_find_dominators(&tree, graph, &upper);
    graph_upper_free(&upper);
    if (status == TTD_OK)
        status = make_tree(dominators, &tree, sizes);
    spanning_tree_free(&tree);
    return status;
}

void graph_dominators_free(struct graph_dominators *dominators)
{
    uint32_t count = dominators->count;
    array_free(dominators->parents, count, sizeof *dominators->parents);
    array_free(dominators->order, count, sizeof *dominators->order);
    array_free(dominators->ranks, count, sizeof *dominators->ranks);
    array_free(dominators->extents, count, sizeof *dominators->extents);
    array_free(dominators->bytes, count, sizeof *dominators->bytes);
    *dominators = (struct graph_dominators){0};
}
