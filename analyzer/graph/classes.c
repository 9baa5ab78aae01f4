/* SPDX-License-Identifier: MIT */
#include "graph/classes.h"

#include <string.h>

#include "graph/arrays.h"
#include "graph/components.h"
#include "graph/mark.h"

/* Holding of a node by the bits of three passes, the strongest of which is the lowest. */
static enum graph_holding holding_of(unsigned bits)
{
    if (bits & 1)
        return GRAPH_HELD;
    return bits & 2 ? GRAPH_HELD_WEAKLY : GRAPH_HELD_BY_STALE;
}

/* Verdict of a node by the marks of all passes. */
static uint8_t verdict_of(unsigned marks)
{
    unsigned by_starts = marks & 7;
    unsigned by_any = marks >> MARK_BY_ANY;
    if (by_starts)
        return (uint8_t)(GRAPH_REACHABLE | holding_of(by_starts) << 2);
    if (by_any)
        return (uint8_t)(GRAPH_POSSIBLY_LOST | holding_of(by_any) << 2);
    return GRAPH_INDIRECTLY_LOST;
}

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
static void collect(const struct collection *collection, uint32_t leader)
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
    uint32_t *lowest = array_new(count, sizeof *lowest);
    uint32_t *stack = NULL;
    enum ttd_status status = lowest ? graph_components(graph, marks, lowest) : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK && !(stack = array_new(count, sizeof *stack)))
        status = TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        struct collection collection = {graph, marks, lowest, leaders, stack};
        for (uint32_t node = 0; node < count; node++)
            leaders[node] = GRAPH_NONE;
        for (uint32_t node = 0; node < count; node++) {
            if (!marks[node] && leaders[node] == GRAPH_NONE)
                collect(&collection, node);
        }
        find_last_leaders(leaders, count);
    }
    array_free(stack, count, sizeof *stack);
    array_free(lowest, count, sizeof *lowest);
    return status;
}

enum ttd_status graph_classes_mark(const struct graph *graph, struct graph_classes *classes)
{
    uint32_t count = graph->node_count;
    *classes = (struct graph_classes){.node_count = count};
    classes->verdicts = array_new(count, sizeof *classes->verdicts);
    enum ttd_status status =
        classes->verdicts ? graph_mark(graph, classes->verdicts) : TTD_ERROR_NO_MEMORY;
    for (uint32_t node = 0; status == TTD_OK && node < count; node++)
        classes->verdicts[node] = verdict_of(classes->verdicts[node]);
    return status;
}

/* Makes the verdict of lost nodes 0, which it is of no others then; or back. */
static void turn_verdicts(struct graph_classes *classes)
{
    for (uint32_t node = 0; node < classes->node_count; node++)
        classes->verdicts[node] ^= GRAPH_INDIRECTLY_LOST;
}

enum ttd_status graph_classes_lead(const struct graph *graph, struct graph_classes *classes)
{
    uint32_t count = graph->node_count;
    enum ttd_status status = TTD_OK;
    turn_verdicts(classes);
    if (count && memchr(classes->verdicts, 0, count)) {
        classes->leaders = array_new(count, sizeof *classes->leaders);
        status = classes->leaders ? find_leaders(graph, classes->verdicts, classes->leaders)
                                  : TTD_ERROR_NO_MEMORY;
    }
    turn_verdicts(classes);
    for (uint32_t node = 0; status == TTD_OK && classes->leaders && node < count; node++) {
        if (classes->leaders[node] == node)
            classes->verdicts[node] = GRAPH_DEFINITELY_LOST;
    }
    return status;
}

enum ttd_status graph_classify(const struct graph *graph, struct graph_classes *classes)
{
    enum ttd_status status = graph_classes_mark(graph, classes);
    return status == TTD_OK ? graph_classes_lead(graph, classes) : status;
}

void graph_classes_free(struct graph_classes *classes)
{
    array_free(classes->verdicts, classes->node_count, sizeof *classes->verdicts);
    array_free(classes->leaders, classes->node_count, sizeof *classes->leaders);
    *classes = (struct graph_classes){0};
}
