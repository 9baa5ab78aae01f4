/* SPDX-License-Identifier: MIT */
#include "graph/components.h"

#include <stdbool.h>

#include "graph/graph_arrays.h"

/* Set in the cursor of a node that leads to one that was entered before it. */
#define IS_INNER (UINT64_C(1) << 63)

/* Tarjan's algorithm as Pearce has it, with stacks instead of recursion ("A Space-Efficient
 * Algorithm for Finding Strongly Connected Components"). A node's index is 0 before it is entered.
 * While it is open, the index is the smallest that its open nodes were found to lead to. When its
 * component is complete, all nodes of that have one number, counted down from that of all nodes of
 * the part, so that it is larger than the index of any open node: those are no more than are left.
 */
struct search {
    const struct graph *graph;
    const uint8_t *outside;
    /* Nodes of the part. */
    uint32_t count;
    uint32_t *indexes;
    /* One array for two stacks, whose nodes are never the same: from its begin the path from the
     * first node to the present one, from its end nodes whose component is not complete. */
    uint32_t *stacks;
    uint32_t depth;
    uint32_t kept;
    /* By place in the path: the next edge. */
    uint64_t *cursors;
    uint32_t next_index;
    uint32_t next_component;
};

static void components_enter(struct search *search, uint32_t node)
{
    search->stacks[search->depth] = node;
    search->cursors[search->depth++] = search->graph->first[node];
    search->indexes[node] = search->next_index++;
}

/* Notes that the present node leads to one of a smaller index, if it is one. */
static void components_meet(struct search *search, uint32_t target)
{
    uint32_t node = search->stacks[search->depth - 1];
    if (search->indexes[target] >= search->indexes[node])
        return;
    search->indexes[node] = search->indexes[target];
    search->cursors[search->depth - 1] |= IS_INNER;
}

/* Goes along edges of the present node up to one that leads to a node not yet entered, and enters
 * that. Returns false if there is none. */
static bool go_deeper(struct search *search)
{
    const struct graph *graph = search->graph;
    uint32_t node = search->stacks[search->depth - 1];
    uint64_t *cursor = &search->cursors[search->depth - 1];
    uint64_t end = graph->first[node + 1];
    for (uint64_t i = *cursor & ~IS_INNER; i < end; i++) {
        uint32_t target = graph->targets[i];
        if (search->outside[target])
            continue;
        if (!search->indexes[target]) {
            *cursor = (*cursor & IS_INNER) | (i + 1);
            components_enter(search, target);
            return true;
        }
        components_meet(search, target);
    }
    return false;
}

/* Leaves the present node: keeps it if its component is not complete, else numbers all of that. */
static void components_leave(struct search *search)
{
    uint32_t last = search->count - 1;
    uint32_t node = search->stacks[--search->depth];
    if (search->cursors[search->depth] & IS_INNER) {
        search->stacks[last - search->kept++] = node;
    } else {
        uint32_t index = search->indexes[node];
        while (search->kept && search->indexes[search->stacks[last - search->kept + 1]] >= index) {
            search->kept--;
            search->indexes[search->stacks[last - search->kept]] = search->next_component;
        }
        search->indexes[node] = search->next_component--;
        search->next_index--;
    }
    if (search->depth)
        components_meet(search, node);
}

/* Replaces the numbers of components by their lowest nodes. The stacks are empty by now. */
static void name_by_lowest(const struct search *search)
{
    uint32_t *lowest = search->stacks;
    for (uint32_t i = 0; i < search->count; i++)
        lowest[i] = GRAPH_NONE;
    for (uint32_t node = 0; node < search->graph->node_count; node++) {
        if (search->outside[node])
            continue;
        uint32_t *first = &lowest[search->count - search->indexes[node]];
        if (*first == GRAPH_NONE)
            *first = node;
        search->indexes[node] = *first;
    }
}

enum ttd_status graph_components(const struct graph *graph, const uint8_t *outside,
                                 uint32_t *lowest)
{
    uint32_t count = count_zeros(outside, graph->node_count);
    struct search search = {.graph = graph,
                            .outside = outside,
                            .count = count,
                            .indexes = lowest,
                            .stacks = array_new(count, sizeof *search.stacks),
                            .cursors = array_new(count, sizeof *search.cursors),
                            .next_index = 1,
                            .next_component = count};
    bool has_memory = search.stacks && search.cursors;
    for (uint32_t node = 0; has_memory && node < graph->node_count; node++) {
        if (outside[node] || lowest[node])
            continue;
        components_enter(&search, node);
        while (search.depth) {
            if (!go_deeper(&search))
                components_leave(&search);
        }
    }
    if (has_memory)
        name_by_lowest(&search);
    array_free(search.stacks, count, sizeof *search.stacks);
    array_free(search.cursors, count, sizeof *search.cursors);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}
