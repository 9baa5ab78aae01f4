/* SPDX-License-Identifier: MIT */
/*
 * Retained sizes of groups of blocks, in two steps. The first ranks all groups by an estimate from
 * the dominator tree: the union of what each block of a group retains by itself. A group retains
 * at least that, and more where several of its blocks hold a block together. The second step finds
 * the exact size of the groups that the first has chosen, in a pass over the graph for every
 * GRAPH_TOGETHER_MAX groups.
 */
#include <stdlib.h>

#include "analyses/reachability/retained_parts.h"
#include "heap/site_table.h"

/* Sets the key of a node's group: its stack, class or label. */
static enum ttd_status identify(const struct heap_retained *retained,
                                const struct heap_retained_options *options, uint32_t node,
                                struct heap_retainer *retainer)
{
    const struct heap_reach *reach = &retained->held.reach;
    *retainer = (struct heap_retainer){.node = GRAPH_NONE};
    if (options->by == HEAP_RETAINED_BY_LABEL) {
        struct heap_block block = heap_nodes_block(&reach->nodes, node);
        return options->labels.find(options->labels.context, &block, &retainer->index);
    }
    if (options->by == HEAP_RETAINED_BY_STACK)
        retainer->stack = heap_nodes_stack(&reach->nodes, node);
    else
        retainer->index = reach->node_classes ? reach->node_classes[node] : 0;
    return TTD_OK;
}

/* Finds the group that has the key of `retainer`, or adds it. */
static enum ttd_status retained_find_group(struct heap_retained *retained, struct hash_map *index,
                                           const struct heap_retainer *retainer, uint32_t *group)
{
    *group = map_get(index, retainer->stack, retainer->index);
    if (*group != MAP_NONE)
        return TTD_OK;
    *group = (uint32_t)retained->count;
    enum ttd_status status = retained_add(retained, retainer);
    if (status == TTD_OK)
        retained->records[*group].group = *group;
    return status == TTD_OK ? map_set(index, retainer->stack, retainer->index, *group) : status;
}

/* Groups the blocks that roots lead to; no other block can be retained. Sets groups[node]. */
static enum ttd_status group_nodes(struct heap_retained *retained,
                                   const struct heap_retained_options *options, uint32_t *groups)
{
    struct hash_map index;
    enum ttd_status status = TTD_OK;
    map_init(&index);
    for (uint32_t node = 0; node < retained->held.reach.nodes.count && status == TTD_OK; node++) {
        struct heap_retainer retainer;
        groups[node] = GRAPH_NONE;
        if (!graph_retained_blocks(&retained->held.dominators, node))
            continue;
        status = identify(retained, options, node, &retainer);
        if (status == TTD_OK)
            status = retained_find_group(retained, &index, &retainer, &groups[node]);
        if (status != TTD_OK)
            break;
        struct heap_retainer *sum = &retained->records[groups[node]];
        sum->blocks++;
        sum->bytes = heap_add(sum->bytes, heap_nodes_size(&retained->held.reach.nodes, node));
    }
    map_free(&index);
    return status;
}

static void retained_take_sums(struct heap_retainer *records, const struct graph_retained *sums,
                               size_t count)
{
    for (size_t i = 0; i < count; i++) {
        records[i].retained_blocks = sums[i].blocks;
        records[i].retained_bytes = sums[i].bytes;
    }
}

/* Chooses the groups with the largest estimates. */
static enum ttd_status retained_choose_groups(struct heap_retained *retained, size_t limit,
                                              const uint32_t *groups)
{
    struct graph_retained *sums = calloc(retained->count + 1, sizeof *sums);
    if (!sums)
        return TTD_ERROR_NO_MEMORY;
    enum ttd_status status = graph_retained_by_group(&retained->held.dominators, groups,
                                                     (uint32_t)retained->count, sums);
    if (status == TTD_OK)
        retained_take_sums(retained->records, sums, retained->count);
    free(sums);
    retained_cut(retained, limit);
    return status;
}

/* Sets groups[node] to the index of the group's record, which the sort has changed; GRAPH_NONE if
 * the record was dropped. */
static enum ttd_status renumber(const struct heap_retained *retained, uint32_t *groups)
{
    uint32_t *numbers = malloc((size_t)retained->total * sizeof *numbers + 1);
    if (!numbers)
        return TTD_ERROR_NO_MEMORY;
    for (uint64_t i = 0; i < retained->total; i++)
        numbers[i] = GRAPH_NONE;
    for (size_t i = 0; i < retained->count; i++)
        numbers[retained->records[i].group] = (uint32_t)i;
    for (uint32_t node = 0; node < retained->held.reach.nodes.count; node++)
        groups[node] = groups[node] == GRAPH_NONE ? GRAPH_NONE : numbers[groups[node]];
    free(numbers);
    return TTD_OK;
}

/* Finds the exact sizes of the chosen groups. */
static enum ttd_status retained_sum_groups(struct heap_retained *retained, const uint32_t *groups)
{
    const struct heap_held *held = &retained->held;
    uint64_t *sizes = heap_held_sizes(held);
    enum ttd_status status = sizes ? TTD_OK : TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < retained->count && status == TTD_OK; i += GRAPH_TOGETHER_MAX) {
        struct graph_retained sums[GRAPH_TOGETHER_MAX];
        size_t remaining = retained->count - i;
        struct graph_together query = {.dominators = &held->dominators,
                                       .groups = groups,
                                       .first = (uint32_t)i,
                                       .count = remaining < GRAPH_TOGETHER_MAX ? (uint32_t)remaining
                                                                               : GRAPH_TOGETHER_MAX,
                                       .sizes = sizes};
        status = graph_retained_together(&held->reach.graph, &query, sums);
        if (status == TTD_OK)
            retained_take_sums(&retained->records[i], sums, query.count);
    }
    heap_held_free_sizes(held, sizes);
    return status;
}

enum ttd_status retained_groups(struct heap_retained *retained,
                                const struct heap_retained_options *options, size_t limit)
{
    uint32_t *groups = malloc((size_t)retained->held.reach.nodes.count * sizeof *groups + 1);
    enum ttd_status status = groups ? group_nodes(retained, options, groups) : TTD_ERROR_NO_MEMORY;
    retained->total = retained->count;
    if (status == TTD_OK)
        status = retained_choose_groups(retained, limit, groups);
    if (status == TTD_OK)
        status = renumber(retained, groups);
    if (status == TTD_OK)
        status = retained_sum_groups(retained, groups);
    free(groups);
    retained_cut(retained, limit);
    return status;
}
