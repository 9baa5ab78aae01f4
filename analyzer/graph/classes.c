/* SPDX-License-Identifier: MIT */
#include "graph/classes.h"

#include <string.h>

#include "graph/arrays.h"
#include "graph/components.h"

/* How lost nodes are collected, each by the lowest that leads to it and was not collected. */
struct collection {
    const struct graph *graph;
    const uint8_t *marks;
    /* By node: the lowest of its component. */
    const uint32_t *lowest;
    /* By node: the leader that it was collected by; itself while it is one. */
    uint32_t *leaders;
    uint32_t *stack;
};

/* Collects all lost nodes that `leader` leads to and no other leader has. Where it leads to another
 * leader, it takes over that leader and all that belongs to it. It is enough to lead to any node of
 * the other leader's cycle. */
static void classes_collect_lost(const struct collection *collection, uint32_t leader)
{
    const struct graph *graph = collection->graph;
    uint32_t *leaders = collection->leaders;
    uint32_t depth = 0;
    leaders[leader] = leader;
    collection->stack[depth++] = leader;
    while (depth) {
        uint32_t node = collection->stack[--depth];
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
            uint32_t target = graph->targets[i];
            if (collection->marks[target])
                continue;
            uint32_t lowest = collection->lowest[target];
            if (leaders[target] == GRAPH_NONE) {
                leaders[target] = leader;
                collection->stack[depth++] = target;
            } else if (leaders[lowest] == lowest) {
                leaders[lowest] = leader;
            }
        }
    }
}

/* Replaces leaders that were taken over by those that took them over. Only later nodes take over,
 * and only later nodes are collected. */
static void find_last_leaders(uint32_t *leaders, uint32_t count)
{
    for (uint32_t node = count; node-- > 0;) {
        if (leaders[node] != GRAPH_NONE && leaders[node] > node)
            leaders[node] = leaders[leaders[node]];
    }
    for (uint32_t node = 0; node < count; node++) {
        if (leaders[node] < node)
            leaders[node] = leaders[leaders[node]];
    }
}

static enum ttd_status find_leaders(const struct graph *graph, const uint8_t *marks,
                                    uint32_t *leaders)
{
    uint32_t count = graph->node_count;
    uint32_t lost = count_zeros(marks, count);
    uint32_t *lowest = array_new(count, sizeof *lowest);
    uint32_t *stack = NULL;
    enum ttd_status status = lowest ? graph_components(graph, marks, lowest) : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK && !(stack = array_new(lost, sizeof *stack)))
        status = TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        struct collection collection = {graph, marks, lowest, leaders, stack};
        for (uint32_t node = 0; node < count; node++)
            leaders[node] = GRAPH_NONE;
        for (uint32_t node = 0; node < count; node++) {
            if (!marks[node] && leaders[node] == GRAPH_NONE)
                classes_collect_lost(&collection, node);
        }
        find_last_leaders(leaders, count);
    }
    array_free(stack, lost, sizeof *stack);
    array_free(lowest, count, sizeof *lowest);
    return status;
}

enum ttd_status graph_classes_mark(const struct graph *graph, struct graph_classes *classes)
{
    uint32_t count = graph->node_count;
    *classes = (struct graph_classes){.node_count = count};
    classes->marks = array_new(count, sizeof *classes->marks);
    return classes->marks ? graph_mark(graph, classes->marks) : TTD_ERROR_NO_MEMORY;
}

enum ttd_status graph_classes_mark_trusted(const struct graph *graph, struct graph_classes *classes)
{
    return graph_mark_trusted(graph, classes->marks);
}

enum ttd_status graph_classes_lead(const struct graph *graph, struct graph_classes *classes)
{
    uint32_t count = graph->node_count;
    if (!count || !memchr(classes->marks, 0, count))
        return TTD_OK;
    classes->leaders = array_new(count, sizeof *classes->leaders);
    return classes->leaders ? find_leaders(graph, classes->marks, classes->leaders)
                            : TTD_ERROR_NO_MEMORY;
}

enum ttd_status graph_classify(const struct graph *graph, struct graph_classes *classes)
{
    enum ttd_status status = graph_classes_mark(graph, classes);
    return status == TTD_OK ? graph_classes_lead(graph, classes) : status;
}

void graph_classes_free(struct graph_classes *classes)
{
    array_free(classes->marks, classes->node_count, sizeof *classes->marks);
    array_free(classes->leaders, classes->node_count, sizeof *classes->leaders);
    *classes = (struct graph_classes){0};
}
