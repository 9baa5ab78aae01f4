/* SPDX-License-Identifier: MIT */
/*
 * Marks from the roots for all groups at once. Each node has a bit for each group: a root leads to
 * the node without a node of that group on the way; or, of groups of roots, one of that group does.
 * Nearly all nodes get all their bits the first time that they are reached. Nodes whose bits have
 * changed wait in a ring, each once.
 */
#include "graph/graph.h"
#include "graph/dominators.h"

struct marking {
    const struct graph *graph;
    /** The groups whose nodes no way leads through; NULL for none. */
    const struct graph_together *query;
    /** By node. */
    uint64_t *bits;
    uint32_t *ring;
    bool *waits;
    uint32_t next;
    uint32_t waiting;
};

static uint64_t together_all_bits(const struct graph_together *query)
{
    return query->count < 64 ? (UINT64_C(1) << query->count) - 1 : UINT64_MAX;
}

/* The bit of a group; 0 if it is none of `count` from `first` on. */
static uint64_t together_group_bit(uint32_t group, uint32_t first, uint32_t count)
{
    bool is_in = group != GRAPH_NONE && group >= first && group - first < count;
    return is_in ? UINT64_C(1) << (group - first) : 0;
}

/* The bit of the group that a node is in. */
static uint64_t together_own_bit(const struct graph_together *query, uint32_t node)
{
    return query ? together_group_bit(query->groups[node], query->first, query->count) : 0;
}

static void together_mark(struct marking *marking, uint32_t node, uint64_t bits)
{
    bits &= ~together_own_bit(marking->query, node) & ~marking->bits[node];
    if (!bits)
        return;
    marking->bits[node] |= bits;
    if (marking->waits[node])
        return;
    uint32_t count = marking->graph->node_count;
    uint32_t room = count - marking->next; /* up to the end of the ring */
    marking->waits[node] = true;
    marking->ring[marking->waiting < room ? marking->next + marking->waiting
                                          : marking->waiting - room] = node;
    marking->waiting++;
}

/* Marks the nodes that the marked nodes lead to. */
static void together_spread(struct marking *marking)
{
    const struct graph *graph = marking->graph;
    while (marking->waiting) {
        uint32_t node = marking->ring[marking->next];
        marking->next = marking->next + 1 < graph->node_count ? marking->next + 1 : 0;
        marking->waiting--;
        marking->waits[node] = false;
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++)
            together_mark(marking, graph->targets[i], marking->bits[node]);
    }
}

static void together_add_node(struct graph_retained *sums, uint64_t bits, uint64_t size)
{
    for (; bits; bits &= bits - 1) {
        struct graph_retained *sum = &sums[__builtin_ctzll(bits)];
        sum->blocks++;
        sum->bytes = graph_add_saturated(sum->bytes, size);
    }
}

static void together_clear_sums(struct graph_retained *sums, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        sums[i] = (struct graph_retained){0};
}

/* Sums up the nodes that roots lead to, but not without a group. */
static void together_sum_up_missing(const struct marking *marking, struct graph_retained *retained)
{
    const struct graph_together *query = marking->query;
    together_clear_sums(retained, query->count);
    for (uint32_t node = 0; node < marking->graph->node_count; node++)
        if (graph_retained_blocks(query->dominators, node))
            together_add_node(retained, together_all_bits(query) & ~marking->bits[node],
                              query->sizes[node]);
}

static void together_sum_up(const struct marking *marking, const struct graph_leading *query,
                            struct graph_retained *sums)
{
    together_clear_sums(sums, query->count);
    for (uint32_t node = 0; node < marking->graph->node_count; node++)
        together_add_node(sums, marking->bits[node], query->sizes[node]);
}

static bool together_begin(struct marking *marking, const struct graph *graph)
{
    marking->graph = graph;
    marking->bits = graph_array_new(graph->node_count, sizeof *marking->bits);
    marking->ring = graph_array_new(graph->node_count, sizeof *marking->ring);
    marking->waits = graph_array_new(graph->node_count, sizeof *marking->waits);
    return marking->bits && marking->ring && marking->waits;
}

static void together_end(struct marking *marking)
{
    graph_array_free(marking->bits, marking->graph->node_count, sizeof *marking->bits);
    graph_array_free(marking->ring, marking->graph->node_count, sizeof *marking->ring);
    graph_array_free(marking->waits, marking->graph->node_count, sizeof *marking->waits);
}

enum ttd_status graph_retained_together(const struct graph *graph,
                                        const struct graph_together *query,
                                        struct graph_retained *retained)
{
    struct marking marking = {.query = query};
    bool has_memory = together_begin(&marking, graph);
    for (uint64_t i = 0; i < graph->root_count && has_memory; i++)
        together_mark(&marking, graph->root_targets[i], together_all_bits(query));
    if (has_memory) {
        together_spread(&marking);
        together_sum_up_missing(&marking, retained);
    }
    together_end(&marking);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

enum ttd_status graph_reached_together(const struct graph *graph, const struct graph_leading *query,
                                       struct graph_retained *direct,
                                       struct graph_retained *reached)
{
    struct marking marking = {.query = NULL};
    bool has_memory = together_begin(&marking, graph);
    for (uint64_t i = 0; i < graph->root_count && has_memory; i++)
        together_mark(&marking, graph->root_targets[i],
                      together_group_bit(query->groups[i], query->first, query->count));
    if (has_memory) {
        together_sum_up(&marking, query, direct);
        together_spread(&marking);
        together_sum_up(&marking, query, reached);
    }
    together_end(&marking);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}
