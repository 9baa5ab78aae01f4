/* SPDX-License-Identifier: MIT */
/*
 * Marks from the roots for all groups at once. Each node has a bit for each group: a root leads to
 * the node without a node of that group on the way. Nearly all nodes get all bits the first time
 * that they are reached. Nodes whose bits have changed wait in a ring, each once.
 */
#include "graph/arrays.h"
#include "graph/dominators.h"

struct marking {
    const struct graph *graph;
    const struct graph_together *query;
    /** By node. */
    uint64_t *bits;
    uint32_t *ring;
    bool *waits;
    uint32_t next;
    uint32_t waiting;
};

static uint64_t all_bits(const struct graph_together *query)
{
    return query->count < 64 ? (UINT64_C(1) << query->count) - 1 : UINT64_MAX;
}

/* The bit of the group that a node is in; 0 if it is in none of them. */
static uint64_t own_bit(const struct graph_together *query, uint32_t node)
{
    uint32_t group = query->groups[node];
    bool is_in =
        group != GRAPH_NONE && group >= query->first && group - query->first < query->count;
    return is_in ? UINT64_C(1) << (group - query->first) : 0;
}

static void mark(struct marking *marking, uint32_t node, uint64_t bits)
{
    bits &= ~own_bit(marking->query, node) & ~marking->bits[node];
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

static void mark_all(struct marking *marking)
{
    const struct graph *graph = marking->graph;
    for (uint64_t i = 0; i < graph->root_count; i++)
        mark(marking, graph->root_targets[i], all_bits(marking->query));
    while (marking->waiting) {
        uint32_t node = marking->ring[marking->next];
        marking->next = marking->next + 1 < graph->node_count ? marking->next + 1 : 0;
        marking->waiting--;
        marking->waits[node] = false;
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++)
            mark(marking, graph->targets[i], marking->bits[node]);
    }
}

/* Sums up the nodes that roots lead to, but not without a group. */
static void sum_up(const struct marking *marking, struct graph_retained *retained)
{
    const struct graph_together *query = marking->query;
    for (uint32_t i = 0; i < query->count; i++)
        retained[i] = (struct graph_retained){0};
    for (uint32_t node = 0; node < marking->graph->node_count; node++) {
        uint64_t missing = all_bits(query) & ~marking->bits[node];
        if (!graph_retained_blocks(query->dominators, node))
            continue;
        for (; missing; missing &= missing - 1) {
            struct graph_retained *sum = &retained[__builtin_ctzll(missing)];
            sum->blocks++;
            sum->bytes = add_saturated(sum->bytes, query->sizes[node]);
        }
    }
}

enum ttd_status graph_retained_together(const struct graph *graph,
                                        const struct graph_together *query,
                                        struct graph_retained *retained)
{
    uint32_t count = graph->node_count;
    struct marking marking = {.graph = graph,
                              .query = query,
                              .bits = array_new(count, sizeof *marking.bits),
                              .ring = array_new(count, sizeof *marking.ring),
                              .waits = array_new(count, sizeof *marking.waits)};
    bool has_memory = marking.bits && marking.ring && marking.waits;
    if (has_memory) {
        mark_all(&marking);
        sum_up(&marking, retained);
    }
    array_free(marking.bits, count, sizeof *marking.bits);
    array_free(marking.ring, count, sizeof *marking.ring);
    array_free(marking.waits, count, sizeof *marking.waits);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}
