/* SPDX-License-Identifier: MIT */
/*
 * Retained sizes of groups of blocks. A quick sum over the blocks of a group, each taken alone,
 * chooses the groups that are shown. Only these get their exact size, which takes a pass over the
 * graph for every 64 of them.
 */
#include <stdlib.h>

#include "analyses/reachability/retained_parts.h"
#include "heap/site_table.h"

/* The key of a node's group: its stack, class or label. */
static enum ttd_status identify(const struct heap_retained *retained,
                                const struct heap_retained_options *options, uint32_t node,
                                struct heap_retainer *item)
{
    const struct heap_reach *reach = &retained->held.reach;
    *item = (struct heap_retainer){.node = GRAPH_NONE};
    if (options->by == HEAP_RETAINED_BY_LABEL) {
        struct heap_block block = heap_nodes_block(&reach->nodes, node);
        return options->labels.find(options->labels.context, &block, &item->index);
    }
    if (options->by == HEAP_RETAINED_BY_STACK)
        item->stack = heap_nodes_stack(&reach->nodes, node);
    else
        item->index = reach->node_classes ? reach->node_classes[node] : 0;
    return TTD_OK;
}

/* Finds the group of a node, or adds it. */
static enum ttd_status find_group(struct heap_retained *retained, struct hash_map *index,
                                  const struct heap_retainer *item, uint32_t *group)
{
    *group = map_get(index, item->stack, item->index);
    if (*group != MAP_NONE)
        return TTD_OK;
    *group = (uint32_t)retained->count;
    enum ttd_status status = retained_add(retained, item);
    if (status == TTD_OK)
        retained->items[*group].group = *group;
    return status == TTD_OK ? map_set(index, item->stack, item->index, *group) : status;
}

/* Groups the blocks that roots lead to. */
static enum ttd_status group_nodes(struct heap_retained *retained,
                                   const struct heap_retained_options *options, uint32_t *groups)
{
    struct hash_map index;
    enum ttd_status status = TTD_OK;
    map_init(&index);
    for (uint32_t node = 0; node < retained->held.reach.nodes.count && status == TTD_OK; node++) {
        struct heap_retainer item;
        groups[node] = GRAPH_NONE;
        if (!graph_retained_blocks(&retained->held.dominators, node))
            continue;
        status = identify(retained, options, node, &item);
        if (status == TTD_OK)
            status = find_group(retained, &index, &item, &groups[node]);
        if (status != TTD_OK)
            break;
        struct heap_retainer *sum = &retained->items[groups[node]];
        sum->blocks++;
        sum->bytes = heap_add(sum->bytes, heap_nodes_size(&retained->held.reach.nodes, node));
    }
    map_free(&index);
    return status;
}

static void take_sums(struct heap_retainer *items, const struct graph_retained *sums, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        items[i].retained_blocks = sums[i].blocks;
        items[i].retained_bytes = sums[i].bytes;
    }
}

/* Chooses the groups whose blocks hold most each by itself. */
static enum ttd_status choose(struct heap_retained *retained, size_t limit, const uint32_t *groups)
{
    struct graph_retained *sums = calloc(retained->count + 1, sizeof *sums);
    if (!sums)
        return TTD_ERROR_NO_MEMORY;
    enum ttd_status status = graph_retained_by_group(&retained->held.dominators, groups,
                                                     (uint32_t)retained->count, sums);
    if (status == TTD_OK)
        take_sums(retained->items, sums, retained->count);
    free(sums);
    retained_cut(retained, limit);
    return status;
}

/* Numbers the groups as their records are now in order. */
static enum ttd_status renumber(const struct heap_retained *retained, uint32_t *groups)
{
    uint32_t *numbers = malloc((size_t)retained->total * sizeof *numbers + 1);
    if (!numbers)
        return TTD_ERROR_NO_MEMORY;
    for (uint64_t i = 0; i < retained->total; i++)
        numbers[i] = GRAPH_NONE;
    for (size_t i = 0; i < retained->count; i++)
        numbers[retained->items[i].group] = (uint32_t)i;
    for (uint32_t node = 0; node < retained->held.reach.nodes.count; node++)
        groups[node] = groups[node] == GRAPH_NONE ? GRAPH_NONE : numbers[groups[node]];
    free(numbers);
    return TTD_OK;
}

/* Finds what the groups that were chosen hold exactly. */
static enum ttd_status sum_up(struct heap_retained *retained, const uint32_t *groups)
{
    const struct heap_held *held = &retained->held;
    uint64_t *sizes = heap_held_sizes(held);
    enum ttd_status status = sizes ? TTD_OK : TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < retained->count && status == TTD_OK; i += GRAPH_TOGETHER_MAX) {
        struct graph_retained sums[GRAPH_TOGETHER_MAX];
        size_t left = retained->count - i;
        struct graph_together query = {.dominators = &held->dominators,
                                       .groups = groups,
                                       .first = (uint32_t)i,
                                       .count = left < GRAPH_TOGETHER_MAX ? (uint32_t)left
                                                                          : GRAPH_TOGETHER_MAX,
                                       .sizes = sizes};
        status = graph_retained_together(&held->reach.graph, &query, sums);
        if (status == TTD_OK)
            take_sums(&retained->items[i], sums, query.count);
    }
    free(sizes);
    return status;
}

enum ttd_status retained_groups(struct heap_retained *retained,
                                const struct heap_retained_options *options, size_t limit)
{
    uint32_t *groups = malloc((size_t)retained->held.reach.nodes.count * sizeof *groups + 1);
    enum ttd_status status = groups ? group_nodes(retained, options, groups) : TTD_ERROR_NO_MEMORY;
    retained->total = retained->count;
    if (status == TTD_OK)
        status = choose(retained, limit, groups);
    if (status == TTD_OK)
        status = renumber(retained, groups);
    if (status == TTD_OK)
        status = sum_up(retained, groups);
    free(groups);
    retained_cut(retained, limit);
    return status;
}
