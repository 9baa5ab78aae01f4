/* SPDX-License-Identifier: MIT */
/* Edges that were put off: the graph is made anew, with each where it belongs. */
#include "reach/builder.h"

#include <stdlib.h>

#include "base/grow.h"

/* How often all edges are put off at most: each time all nodes are gone through. */
#define ROUNDS_MAX 4

static enum ttd_status late_edges_keep(struct reach_builder *builder,
                                       const struct reach_late_edge *edge)
{
    enum ttd_status status = grow_array((void **)&builder->late, &builder->late_capacity,
                                        builder->late_count + 1, sizeof *builder->late);
    if (status == TTD_OK)
        builder->late[builder->late_count++] = *edge;
    return status;
}

static struct reach_late_edge edge_of(const struct heap_reach *reach, uint32_t source, uint64_t i)
{
    const struct edge_offsets *offsets = &reach->offsets;
    return (struct reach_late_edge){
        .source = source,
        .target = reach->graph.targets[i],
        .target_offset = edge_offset_in_target(offsets, i),
        .offset = offsets->is_without_sources ? 0 : edge_offset_in_source(offsets, i)};
}

/* Puts off the edges that were added. */
static enum ttd_status put_off_all(struct reach_builder *builder)
{
    struct heap_reach *reach = builder->reach;
    struct graph *graph = &reach->graph;
    enum ttd_status status = TTD_OK;
    graph_finish(graph);
    for (uint32_t node = 0; node <= builder->source; node++) {
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1] && status == TTD_OK; i++) {
            struct reach_late_edge edge = edge_of(reach, node, i);
            status = late_edges_keep(builder, &edge);
        }
    }
    edge_offsets_clear(&reach->offsets, graph->edge_count);
    graph_drop_edges(graph);
    builder->late_rounds++;
    return status;
}

/* Whether more references may follow than edges were added. */
static bool are_few_added(const struct reach_builder *builder)
{
    const struct heap_reach *reach = builder->reach;
    uint64_t added = reach->graph.edge_count, known = added + builder->late_count;
    return reach->snapshot.references > known && added < reach->snapshot.references - known;
}

enum ttd_status reach_builder_put_off(struct reach_builder *builder,
                                      const struct reach_late_edge *edge)
{
    if (builder->late_rounds == ROUNDS_MAX || !are_few_added(builder))
        return late_edges_keep(builder, edge);
    enum ttd_status status = put_off_all(builder);
    return status == TTD_OK ? reach_builder_append(builder, edge) : status;
}

static int late_edges_compare(const void *left, const void *right)
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
    for (uint64_t i = graph->first[source]; i < graph->first[source + 1] && status == TTD_OK; i++) {
        struct reach_late_edge edge = edge_of(before, source, i);
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
    qsort(builder->late, builder->late_count, sizeof *builder->late, late_edges_compare);
    graph_finish(&before.graph);
    size_t count = (size_t)before.graph.edge_count + builder->late_count;
    reach->offsets = (struct edge_offsets){.expected = before.offsets.expected ? count : 0,
                                           .is_without_sources = before.offsets.is_without_sources};
    enum ttd_status status = graph_init(&reach->graph, reach->nodes.count);
    if (status == TTD_OK)
        status = graph_reserve_edges(&reach->graph, count);
    for (uint64_t i = 0; i < before.graph.root_count && status == TTD_OK; i++)
        status = graph_add_root(&reach->graph, before.graph.root_targets[i],
                                before.graph.root_flags[i], before.graph.root_ids[i]);
    for (uint32_t node = 0; node < reach->nodes.count && status == TTD_OK; node++)
        status = append_all_of(builder, &before, node, &late);
    graph_free(&before.graph);
    edge_offsets_free(&before.offsets);
    return status;
}
