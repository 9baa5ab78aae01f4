/* SPDX-License-Identifier: MIT */
#include "reach/between.h"

#include "base/grow.h"
#include "base/sort.h"

#define WORD 8

/* Whether a word of heap memory outside of live blocks is no pointer to its target: it begins in a
 * block; or it points at the last word of the target, like an allocator's pointer to the free
 * memory behind it. */
static bool is_no_pointer(struct reach_builder *builder, uint64_t word, uint64_t value,
                          uint32_t target)
{
    struct heap_nodes *nodes = &builder->reach->nodes;
    return heap_nodes_at(nodes, word) != HEAP_NO_NODE ||
           (value != heap_nodes_address(nodes, target) &&
            heap_nodes_last(nodes, target) - value < WORD);
}

enum ttd_status reach_between_add(struct reach_builder *builder,
                                  const struct ttd_reference *reference, uint64_t word,
                                  uint32_t target)
{
    if (!builder->keeps_between)
        return is_no_pointer(builder, word, reference->value, target)
                   ? TTD_OK
                   : reach_builder_add_root(builder, reference, GRAPH_STALE);
    enum ttd_status status = grow_array((void **)&builder->between, &builder->between_capacity,
                                        builder->between_count + 1, sizeof *builder->between);
    if (status == TTD_OK)
        builder->between[builder->between_count++] = *reference;
    return status;
}

bool reach_between_has_nodes(const struct heap_reach *reach, uint64_t first, uint64_t last)
{
    uint32_t low = 0, high = reach->nodes.count;
    SEARCH_SORTED(low, high, middle, heap_nodes_last(&reach->nodes, middle) < first);
    return low < reach->nodes.count && heap_nodes_address(&reach->nodes, low) <= last;
}

static enum ttd_status list_relic(struct heap_reach *reach, uint64_t root)
{
    const struct graph *graph = &reach->graph;
    enum ttd_status status = grow_array((void **)&reach->relics, &reach->relic_capacity,
                                        reach->relic_count + 1, sizeof *reach->relics);
    if (status == TTD_OK)
        reach->relics[reach->relic_count++] =
            (struct heap_relic){graph->root_targets[root], reach->roots[graph->root_ids[root]]};
    return status;
}

enum ttd_status reach_between_settle(struct heap_reach *reach,
                                     const struct heap_reach_options *options, bool *are_changed)
{
    struct graph *graph = &reach->graph;
    uint8_t doubtful = options->tells_doubtful ? GRAPH_INTERIOR | GRAPH_STALE : GRAPH_INTERIOR;
    enum ttd_status status = TTD_OK;
    uint64_t kept = 0;
    *are_changed = false;
    for (uint64_t i = 0; i < graph->root_count && status == TTD_OK; i++) {
        uint8_t flags = graph->root_flags[i];
        *are_changed = *are_changed || flags & GRAPH_STALE;
        if (flags == REACH_ROOT_RELIC && options->lists_relics)
            status = list_relic(reach, i);
        if (flags == REACH_ROOT_DROPPED || flags == REACH_ROOT_RELIC)
            continue;
        graph->root_targets[kept] = graph->root_targets[i];
        graph->root_flags[kept] = flags & GRAPH_STALE ? doubtful : flags;
        graph->root_ids[kept++] = graph->root_ids[i];
    }
    graph->root_count = kept;
    return status;
}
