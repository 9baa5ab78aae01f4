/* SPDX-License-Identifier: MIT */
#include "graph/dominators.h"

#include "graph/arrays.h"
#include "graph/semidominators.h"

/* Nodes between a prefetch and its use. */
#define AHEAD 16

/* Prefetches what will be written of a node, if there is one of that number. */
static inline __attribute__((always_inline)) void
prefetch(const struct graph_dominators *dominators, const struct spanning_tree *tree,
         uint64_t number)
{
    if (number >= tree->reached)
        return;
    uint32_t node = tree->nodes[number];
    __builtin_prefetch(&dominators->extents[node], 1);
    __builtin_prefetch(&dominators->bytes[node], 1);
    __builtin_prefetch(&dominators->parents[node], 1);
    __builtin_prefetch(&dominators->ranks[node], 1);
}

/* Sums up extents and bytes from the bottom up: a dominator has a lower number. */
static void sum_up(struct graph_dominators *dominators, const struct spanning_tree *tree,
                   const uint64_t *sizes)
{
    for (uint32_t number = 0; number < tree->reached; number++) {
        uint32_t node = tree->nodes[number];
        prefetch(dominators, tree, (uint64_t)number + AHEAD);
        dominators->extents[node] = 1;
        dominators->bytes[node] = node < dominators->node_count ? sizes[node] : 0;
    }
    for (uint32_t number = tree->reached - 1; number > 0; number--) {
        uint32_t node = tree->nodes[number];
        prefetch(dominators, tree, (uint64_t)number - AHEAD);
        uint32_t parent = tree->nodes[tree->parents[number]];
        dominators->parents[node] = parent;
        dominators->extents[parent] += dominators->extents[node];
        dominators->bytes[parent] =
            add_saturated(dominators->bytes[parent], dominators->bytes[node]);
    }
}

/* Gives each node its rank, from the top down: behind its parent, and behind what the siblings
 * with lower numbers dominate. `spare` has by number the next rank for a child. */
static void give_ranks(struct graph_dominators *dominators, const struct spanning_tree *tree,
                       uint32_t *spare)
{
    for (uint32_t number = 0; number < tree->reached; number++) {
        uint32_t node = tree->nodes[number];
        uint32_t rank = 0;
        prefetch(dominators, tree, (uint64_t)number + AHEAD);
        if (number > 0) {
            uint32_t *next = &spare[tree->parents[number]];
            rank = *next;
            *next += dominators->extents[node];
        }
        dominators->ranks[node] = rank;
        dominators->order[rank] = node;
        spare[number] = rank + 1;
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
    enum ttd_status status = allocate(dominators);
    uint32_t *spare = NULL;
    if (status == TTD_OK && !(spare = array_new(tree->reached, sizeof *spare)))
        status = TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        sum_up(dominators, tree, sizes);
        give_ranks(dominators, tree, spare);
    }
    array_free(spare, tree->reached, sizeof *spare);
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
