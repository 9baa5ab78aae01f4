/* SPDX-License-Identifier: MIT */
#include "graph/graph_classes.h"

#include <stdbool.h>
#include <string.h>

#include "graph/graph.h"

/* Set in the cursor of a node that leads to one that was entered before it. */
#define IS_INNER (UINT64_C(1) << 63)

/* Tarjan's algorithm as Pearce has it, with stacks instead of recursion ("A Space-Efficient
 * Algorithm for Finding Strongly Connected Components"). A node's index is 0 before it is entered.
 * While it is open, the index is the smallest that its open nodes were found to lead to. When its
 * component is complete, all its nodes have one number, counted down from the number of all nodes
 * of the part, so that it is larger than the index of any open node: those are no more than are
 * left.
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
static bool classes_go_deeper(struct search *search)
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
static void classes_name_by_lowest(const struct search *search)
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
    uint32_t count = graph_count_zeros(outside, graph->node_count);
    struct search search = {.graph = graph,
                            .outside = outside,
                            .count = count,
                            .indexes = lowest,
                            .stacks = graph_array_new(count, sizeof *search.stacks),
                            .cursors = graph_array_new(count, sizeof *search.cursors),
                            .next_index = 1,
                            .next_component = count};
    bool has_memory = search.stacks && search.cursors;
    for (uint32_t node = 0; has_memory && node < graph->node_count; node++) {
        if (outside[node] || lowest[node])
            continue;
        components_enter(&search, node);
        while (search.depth) {
            if (!classes_go_deeper(&search))
                components_leave(&search);
        }
    }
    if (has_memory)
        classes_name_by_lowest(&search);
    graph_array_free(search.stacks, count, sizeof *search.stacks);
    graph_array_free(search.cursors, count, sizeof *search.cursors);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

/* Nodes whose edges are brought nearer before they are followed: a power of two. */
#define SOON 16

/* A pass that uses more pointers than another reaches all that the other reaches. It begins with
 * the marks of all such passes. */
static const struct pass {
    unsigned begins_with;
    unsigned unused_flags;
} passes[MARK_PASSES] = {
    [MARK_BY_STARTS] = {0, GRAPH_INTERIOR | GRAPH_WEAK | GRAPH_STALE},
    [MARK_BY_STARTS_WEAK] = {MARK_BIT(MARK_BY_STARTS), GRAPH_INTERIOR | GRAPH_STALE},
    [MARK_BY_STARTS_STALE] = {MARK_BIT(MARK_BY_STARTS) | MARK_BIT(MARK_BY_STARTS_WEAK),
                              GRAPH_INTERIOR},
    [MARK_BY_ANY] = {MARK_BIT(MARK_BY_STARTS), GRAPH_WEAK | GRAPH_STALE},
    [MARK_BY_ANY_WEAK] = {MARK_BIT(MARK_BY_STARTS) | MARK_BIT(MARK_BY_STARTS_WEAK) |
                              MARK_BIT(MARK_BY_ANY),
                          GRAPH_STALE},
    [MARK_BY_ANY_STALE] = {MARK_BIT(MARK_BY_ANY_STALE) - 1, 0},
};

struct marker {
    const struct graph *graph;
    uint8_t *marks;
    /* Nodes that are marked, and whose edges are still to be followed. */
    uint32_t *stack;
    uint32_t depth;
    /* The pass sets `mark`, stops at nodes with a mark of `reached`, and skips `unused_flags`. */
    unsigned mark;
    unsigned reached;
    unsigned unused_flags;
    /* Edges without flags have been followed from all nodes that are marked. */
    bool has_followed;
};

static inline void classes_mark_reach(struct marker *marker, uint32_t node, unsigned flags)
{
    if (flags & marker->unused_flags || marker->marks[node] & marker->reached)
        return;
    marker->marks[node] |= (uint8_t)marker->mark;
    marker->stack[marker->depth++] = node;
}

/* Nodes taken from the stack, as a ring: memory is slower than all else. */
struct soon {
    uint32_t nodes[SOON];
    uint32_t begin;
    uint32_t count;
};

static void classes_mark_fill(struct marker *marker, struct soon *soon)
{
    while (soon->count < SOON && marker->depth) {
        uint32_t node = marker->stack[--marker->depth];
        __builtin_prefetch(&marker->graph->first[node]);
        soon->nodes[(soon->begin + soon->count++) % SOON] = node;
    }
    if (soon->count > SOON / 2 && marker->graph->targets) {
        uint64_t edge = marker->graph->first[soon->nodes[(soon->begin + SOON / 2) % SOON]];
        __builtin_prefetch(&marker->graph->targets[edge]);
        __builtin_prefetch(&marker->graph->flags[edge]);
    }
}

static void classes_mark_follow(struct marker *marker)
{
    const struct graph *graph = marker->graph;
    struct soon soon = {.count = 0};
    for (classes_mark_fill(marker, &soon); soon.count; classes_mark_fill(marker, &soon)) {
        uint32_t node = soon.nodes[soon.begin];
        soon.begin = (soon.begin + 1) % SOON;
        soon.count--;
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++)
            classes_mark_reach(marker, graph->targets[i], graph->flags[i]);
    }
}

/* Reaches the targets of the roots, and of the nodes of earlier passes: they have not used all
 * pointers of this one. A pointer without flags is used by every pass. Where edges have lost flags,
 * nodes of the pass itself are gone through as well, and all edges. */
static void classes_mark_begin(struct marker *marker)
{
    const struct graph *graph = marker->graph;
    for (uint64_t i = 0; i < graph->root_count; i++)
        classes_mark_reach(marker, graph->root_targets[i], graph->root_flags[i]);
    unsigned before = marker->has_followed ? marker->reached & ~marker->mark : marker->reached;
    for (uint32_t node = 0; before && node < graph->node_count; node++) {
        if (!(marker->marks[node] & before))
            continue;
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
            if (graph->flags[i] || !marker->has_followed)
                classes_mark_reach(marker, graph->targets[i], graph->flags[i]);
        }
    }
}

/* All flags that any pointer has. */
static unsigned classes_flags_of(const struct graph *graph)
{
    unsigned flags = 0;
    for (uint64_t i = 0; i < graph->edge_count; i++)
        flags |= graph->flags[i];
    for (uint64_t i = 0; i < graph->root_count; i++)
        flags |= graph->root_flags[i];
    return flags;
}

/* Whether a pass uses the same pointers as one of those that it begins with. */
static bool classes_is_needless(unsigned pass, unsigned flags)
{
    for (unsigned before = 0; before < pass; before++) {
        if (passes[pass].begins_with & MARK_BIT(before) &&
            !((passes[pass].unused_flags ^ passes[before].unused_flags) & flags))
            return true;
    }
    return false;
}

/* Makes the passes that use no pointer with a flag of `left_out`. */
static enum ttd_status classes_make_passes(const struct graph *graph, uint8_t *marks,
                                           unsigned left_out, bool has_followed)
{
    struct marker marker = {.graph = graph, .marks = marks, .has_followed = has_followed};
    marker.stack = graph_array_new(graph->node_count, sizeof *marker.stack);
    if (!marker.stack)
        return TTD_ERROR_NO_MEMORY;
    unsigned flags = classes_flags_of(graph);
    for (unsigned pass = 0; pass < MARK_PASSES; pass++) {
        if (classes_is_needless(pass, flags) || (passes[pass].unused_flags & left_out) != left_out)
            continue;
        marker.mark = MARK_BIT(pass);
        marker.reached = MARK_BIT(pass) | passes[pass].begins_with;
        marker.unused_flags = passes[pass].unused_flags;
        classes_mark_begin(&marker);
        classes_mark_follow(&marker);
    }
    graph_array_free(marker.stack, graph->node_count, sizeof *marker.stack);
    return TTD_OK;
}

enum ttd_status graph_mark(const struct graph *graph, uint8_t *marks)
{
    return classes_make_passes(graph, marks, 0, true);
}

enum ttd_status graph_mark_trusted(const struct graph *graph, uint8_t *marks)
{
    return classes_make_passes(graph, marks, GRAPH_STALE, false);
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
static void classes_find_last_leaders(uint32_t *leaders, uint32_t count)
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

static enum ttd_status classes_find_leaders(const struct graph *graph, const uint8_t *marks,
                                            uint32_t *leaders)
{
    uint32_t count = graph->node_count;
    uint32_t lost = graph_count_zeros(marks, count);
    uint32_t *lowest = graph_array_new(count, sizeof *lowest);
    uint32_t *stack = NULL;
    enum ttd_status status = lowest ? graph_components(graph, marks, lowest) : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK && !(stack = graph_array_new(lost, sizeof *stack)))
        status = TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        struct collection collection = {graph, marks, lowest, leaders, stack};
        for (uint32_t node = 0; node < count; node++)
            leaders[node] = GRAPH_NONE;
        for (uint32_t node = 0; node < count; node++) {
            if (!marks[node] && leaders[node] == GRAPH_NONE)
                classes_collect_lost(&collection, node);
        }
        classes_find_last_leaders(leaders, count);
    }
    graph_array_free(stack, lost, sizeof *stack);
    graph_array_free(lowest, count, sizeof *lowest);
    return status;
}

enum ttd_status graph_classes_mark(const struct graph *graph, struct graph_classes *classes)
{
    uint32_t count = graph->node_count;
    *classes = (struct graph_classes){.node_count = count};
    classes->marks = graph_array_new(count, sizeof *classes->marks);
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
    classes->leaders = graph_array_new(count, sizeof *classes->leaders);
    return classes->leaders ? classes_find_leaders(graph, classes->marks, classes->leaders)
                            : TTD_ERROR_NO_MEMORY;
}

enum ttd_status graph_classify(const struct graph *graph, struct graph_classes *classes)
{
    enum ttd_status status = graph_classes_mark(graph, classes);
    return status == TTD_OK ? graph_classes_lead(graph, classes) : status;
}

void graph_classes_free(struct graph_classes *classes)
{
    graph_array_free(classes->marks, classes->node_count, sizeof *classes->marks);
    graph_array_free(classes->leaders, classes->node_count, sizeof *classes->leaders);
    *classes = (struct graph_classes){0};
}
