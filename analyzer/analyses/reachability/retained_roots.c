/* SPDX-License-Identifier: MIT */
/* Sizes of root groups: the blocks that a group points at, those that it leads to, and those that
 * it retains, which no other group leads to. */
#include <stdlib.h>

#include "analyses/reachability/retained_parts.h"

/* Returns, by root, the index of the record of its group; GRAPH_NONE if the record was dropped.
 * NULL if memory is exhausted. */
static uint32_t *number(const struct heap_retained *retained)
{
    const struct heap_held *held = &retained->held;
    uint64_t roots = held->reach.graph.root_count;
    uint32_t *numbers = malloc((size_t)held->group_count * sizeof *numbers + 1);
    uint32_t *groups = malloc((size_t)roots * sizeof *groups + 1);
    for (uint32_t i = 0; numbers && i < held->group_count; i++)
        numbers[i] = GRAPH_NONE;
    for (size_t i = 0; numbers && i < retained->count; i++)
        numbers[retained->records[i].index - 1] = (uint32_t)i;
    for (uint64_t i = 0; numbers && groups && i < roots; i++)
        groups[i] = numbers[held->root_groups[i]];
    if (!numbers) {
        free(groups);
        groups = NULL;
    }
    free(numbers);
    return groups;
}

/* Sums up the blocks that root groups point at and lead to. A pass over the graph serves
 * GRAPH_TOGETHER_MAX groups, so only the groups that are kept get these sums. */
static enum ttd_status retained_sum_roots(struct heap_retained *retained)
{
    uint32_t *groups = number(retained);
    uint64_t *sizes = heap_held_sizes(&retained->held);
    enum ttd_status status = groups && sizes ? TTD_OK : TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < retained->count && status == TTD_OK; i += GRAPH_TOGETHER_MAX) {
        struct graph_retained direct[GRAPH_TOGETHER_MAX], reached[GRAPH_TOGETHER_MAX];
        size_t remaining = retained->count - i;
        struct graph_leading query = {.groups = groups,
                                      .first = (uint32_t)i,
                                      .count = remaining < GRAPH_TOGETHER_MAX ? (uint32_t)remaining
                                                                              : GRAPH_TOGETHER_MAX,
                                      .sizes = sizes};
        status = graph_reached_together(&retained->held.reach.graph, &query, direct, reached);
        for (size_t j = 0; j < query.count && status == TTD_OK; j++) {
            struct heap_retainer *retainer = &retained->records[i + j];
            retainer->blocks = direct[j].blocks;
            retainer->bytes = direct[j].bytes;
            retainer->reachable_blocks = reached[j].blocks;
            retainer->reachable_bytes = reached[j].bytes;
        }
    }
    free(groups);
    heap_held_free_sizes(&retained->held, sizes);
    return status;
}

enum ttd_status retained_roots(struct heap_retained *retained, size_t limit)
{
    enum ttd_status status = TTD_OK;
    for (uint32_t i = 0; i < retained->held.group_count && status == TTD_OK; i++) {
        struct heap_retainer retainer =
            retained_of_node(retained, heap_held_group_node(&retained->held, i));
        status = retained_add(retained, &retainer);
    }
    retained->total = retained->count;
    retained_cut(retained, limit);
    return status == TTD_OK ? retained_sum_roots(retained) : status;
}
