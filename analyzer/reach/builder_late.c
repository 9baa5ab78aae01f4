/* SPDX-License-Identifier: MIT */
/* Edges that were put off: the graph is made anew, with each where it belongs. */
#include "reach/builder.h"

#include <stdlib.h>

static int compare_late(const void *left, const void *right)
{
    const struct reach_late_edge *a = left;
    const struct reach_late_edge *b = right;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Appends the edges of a source from the graph before, and those that were put off. */
static enum ttd_status append_all_of(struct reach_builder *builder, const struct heap_reach *before,
                                     uint32_t source, size_t *late)
{
    enum ttd_status status = TTD_OK;
    const struct graph *graph = &before->graph;
    const struct edge_offsets *offsets = &before->offsets;
    for (uint64_t i = graph->first[source]; i < graph->first[source + 1] && status == TTD_OK; i++) {
        struct reach_late_edge edge = {.source = source,
                                       .target = graph->targets[i],
                                       .target_offset = edge_offset_in_target(offsets, i)};
        if (!offsets->is_without_sources)
            edge.offset = edge_offset_in_source(offsets, i);
        status = reach_builder_append(builder, &edge);
    }
    for (; *late < builder->late_count && builder->late[*late].source == source && status == TTD_OK;
         ++*late)
        status = reach_builder_append(builder, &builder->late[*late]);
    return status;
}

enum ttd_status reach_builder_merge_late(struct reach_builder *builder)
{
    struct heap_reach *reach = builder->reach;
    struct heap_reach before = {.graph = reach->graph, .offsets = reach->offsets};
    size_t late = 0;
    qsort(builder->late, builder->late_count, sizeof *builder->late, compare_late);
    graph_finish(&before.graph);
    reach->offsets = (struct edge_offsets){.is_without_sources = before.offsets.is_without_sources};
    enum ttd_status status = graph_init(&reach->graph, reach->nodes.count);
    for (uint64_t i = 0; i < before.graph.root_count && status == TTD_OK; i++)
        status = graph_add_root(&reach->graph, before.graph.root_targets[i],
                                before.graph.root_flags[i], before.graph.root_ids[i]);
    for (uint32_t node = 0; node < reach->nodes.count && status == TTD_OK; node++)
        status = append_all_of(builder, &before, node, &late);
    graph_free(&before.graph);
    edge_offsets_free(&before.offsets);
    return status;
}
