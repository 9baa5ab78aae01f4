/* SPDX-License-Identifier: MIT */
#include "graph/mark.h"

#include <stdbool.h>

#include "graph/arrays.h"

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

static inline void mark_reach(struct marker *marker, uint32_t node, unsigned flags)
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

static void mark_fill(struct marker *marker, struct soon *soon)
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

static void mark_follow(struct marker *marker)
{
    const struct graph *graph = marker->graph;
    struct soon soon = {.count = 0};
    for (mark_fill(marker, &soon); soon.count; mark_fill(marker, &soon)) {
        uint32_t node = soon.nodes[soon.begin];
        soon.begin = (soon.begin + 1) % SOON;
        soon.count--;
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++)
            mark_reach(marker, graph->targets[i], graph->flags[i]);
    }
}

/* Reaches what the roots point at, and what nodes of the passes before point at: they have not used
 * all pointers of this one. A pointer without flags is used by every pass. Where edges have lost
 * flags, nodes of the pass itself are gone through as well, and all edges. */
static void mark_begin(struct marker *marker)
{
    const struct graph *graph = marker->graph;
    for (uint64_t i = 0; i < graph->root_count; i++)
        mark_reach(marker, graph->root_targets[i], graph->root_flags[i]);
    unsigned before = marker->has_followed ? marker->reached & ~marker->mark : marker->reached;
    for (uint32_t node = 0; before && node < graph->node_count; node++) {
        if (!(marker->marks[node] & before))
            continue;
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
            if (graph->flags[i] || !marker->has_followed)
                mark_reach(marker, graph->targets[i], graph->flags[i]);
        }
    }
}

/* All flags that any pointer has. */
static unsigned flags_of(const struct graph *graph)
{
    unsigned flags = 0;
    for (uint64_t i = 0; i < graph->edge_count; i++)
        flags |= graph->flags[i];
    for (uint64_t i = 0; i < graph->root_count; i++)
        flags |= graph->root_flags[i];
    return flags;
}

/* Whether a pass uses the same pointers as one of those that it begins with. */
static bool is_needless(unsigned pass, unsigned flags)
{
    for (unsigned before = 0; before < pass; before++) {
        if (passes[pass].begins_with & MARK_BIT(before) &&
            !((passes[pass].unused_flags ^ passes[before].unused_flags) & flags))
            return true;
    }
    return false;
}

/* Makes the passes that use no pointer with a flag of `left_out`. */
static enum ttd_status make_passes(const struct graph *graph, uint8_t *marks, unsigned left_out,
                                   bool has_followed)
{
    struct marker marker = {.graph = graph, .marks = marks, .has_followed = has_followed};
    marker.stack = array_new(graph->node_count, sizeof *marker.stack);
    if (!marker.stack)
        return TTD_ERROR_NO_MEMORY;
    unsigned flags = flags_of(graph);
    for (unsigned pass = 0; pass < MARK_PASSES; pass++) {
        if (is_needless(pass, flags) || (passes[pass].unused_flags & left_out) != left_out)
            continue;
        marker.mark = MARK_BIT(pass);
        marker.reached = MARK_BIT(pass) | passes[pass].begins_with;
        marker.unused_flags = passes[pass].unused_flags;
        mark_begin(&marker);
        mark_follow(&marker);
    }
    array_free(marker.stack, graph->node_count, sizeof *marker.stack);
    return TTD_OK;
}

enum ttd_status graph_mark(const struct graph *graph, uint8_t *marks)
{
    return make_passes(graph, marks, 0, true);
}

enum ttd_status graph_mark_trusted(const struct graph *graph, uint8_t *marks)
{
    return make_passes(graph, marks, GRAPH_STALE, false);
}
