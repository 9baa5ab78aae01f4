/* SPDX-License-Identifier: MIT */
#include "graph/upper.h"

#include "graph/arrays.h"

static uint32_t count_leaders(const struct graph_classes *classes)
{
    uint32_t count = 0;
    for (uint32_t node = 0; classes && classes->leaders && node < classes->node_count; node++)
        count += classes->leaders[node] == node;
    return count;
}

/* Makes the edges of the groups: the targets of the roots, sorted by group. */
static void upper_add_groups(struct graph_upper *upper, const struct graph *graph,
                             const uint32_t *groups)
{
    for (uint64_t i = 0; i < graph->root_count; i++)
        upper->first[groups[i]]++;
    for (uint32_t i = 1; i < upper->count; i++)
        upper->first[i] += upper->first[i - 1];
    /* first[i] is where group i ends; it becomes where it begins. */
    for (uint64_t i = graph->root_count; i-- > 0;)
        upper->targets[--upper->first[groups[i]]] = graph->root_targets[i];
}

static void add_top(struct graph_upper *upper, const struct graph *graph,
                    const struct graph_dominators_query *query)
{
    const struct graph_classes *classes = query->classes;
    uint32_t end = upper->first[upper->count - 1];
    for (uint32_t i = 0; i + 1 < upper->count; i++)
        upper->targets[end++] = graph->node_count + i;
    for (uint64_t i = 0; !query->groups && i < graph->root_count; i++)
        upper->targets[end++] = graph->root_targets[i];
    for (uint32_t node = 0; classes && classes->leaders && node < classes->node_count; node++) {
        if (classes->leaders[node] == node)
            upper->targets[end++] = node;
    }
    upper->first[upper->count] = end;
}

enum ttd_status graph_upper_init(struct graph_upper *upper, const struct graph *graph,
                                 const struct graph_dominators_query *query)
{
    uint32_t group_count = query->groups ? query->group_count : 0;
    *upper = (struct graph_upper){0};
    uint64_t edge_count = graph->root_count + group_count + count_leaders(query->classes);
    if (group_count > GRAPH_NODES_MAX || edge_count > UINT32_MAX)
        return TTD_ERROR_NO_MEMORY;
    upper->count = group_count + 1;
    upper->edge_count = (uint32_t)edge_count;
    upper->first = array_new((size_t)upper->count + 1, sizeof *upper->first);
    upper->targets = array_new(upper->edge_count, sizeof *upper->targets);
    if (!upper->first || !upper->targets)
        return TTD_ERROR_NO_MEMORY;
    if (query->groups)
        upper_add_groups(upper, graph, query->groups);
    add_top(upper, graph, query);
    return TTD_OK;
}

void graph_upper_free(struct graph_upper *upper)
{
    array_free(upper->first, (size_t)upper->count + 1, sizeof *upper->first);
    array_free(upper->targets, upper->edge_count, sizeof *upper->targets);
    *upper = (struct graph_upper){0};
}
