/* SPDX-License-Identifier: MIT */
#include "graph/dominators.h"

#include "graph/arrays.h"

uint32_t graph_retained_blocks(const struct graph_dominators *dominators, uint32_t node)
{
    uint32_t extent = dominators->extents[node];
    if (node < dominators->node_count)
        return extent;
    return node + 1 < dominators->count ? extent - 1
                                        : extent - (dominators->count - dominators->node_count);
}

uint32_t graph_dominators_child(const struct graph_dominators *dominators, uint32_t node,
                                uint32_t *cursor)
{
    if (*cursor + 1 >= dominators->extents[node])
        return GRAPH_NONE;
    uint32_t child = dominators->order[dominators->ranks[node] + 1 + *cursor];
    *cursor += dominators->extents[child];
    return child;
}

enum ttd_status graph_retained_by_group(const struct graph_dominators *dominators,
                                        const uint32_t *groups, uint32_t group_count,
                                        struct graph_retained *retained)
{
    /* By group: the end of what its last node dominates that no node of it dominates. */
    uint32_t *ends = array_new(group_count, sizeof *ends);
    if (!ends)
        return TTD_ERROR_NO_MEMORY;
    for (uint32_t i = 0; i < group_count; i++)
        retained[i] = (struct graph_retained){0};
    for (uint32_t number = 0; number < dominators->reached; number++) {
        uint32_t node = dominators->order[number];
        if (node >= dominators->node_count || groups[node] == GRAPH_NONE ||
            number < ends[groups[node]])
            continue;
        struct graph_retained *sum = &retained[groups[node]];
        ends[groups[node]] = number + dominators->extents[node];
        sum->blocks += dominators->extents[node];
        sum->bytes = add_saturated(sum->bytes, dominators->bytes[node]);
    }
    array_free(ends, group_count, sizeof *ends);
    return TTD_OK;
}
