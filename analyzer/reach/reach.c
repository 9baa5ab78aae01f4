/* SPDX-License-Identifier: MIT */
#include "reach/reach.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "reach/builder.h"
#include "reach/in_flight.h"
#include "reach/inherited.h"
#include "reach/references.h"
#include "reach/rules.h"
#include "reach/stale.h"
#include "reach/within.h"

static enum ttd_status reach_add_regions(struct heap_reach *reach,
                                         const struct ttd_regions *regions)
{
    size_t count = (size_t)regions->first - 1 + regions->count;
    if (regions->snapshot != reach->snapshot.number)
        return TTD_OK;
    /* Regions behind a gap in a damaged file are left out, and words in them count as misplaced. */
    if (regions->first - 1 > reach->region_count)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&reach->regions, &reach->region_capacity, count,
                                        sizeof *reach->regions);
    if (status != TTD_OK)
        return status;
    memcpy(&reach->regions[regions->first - 1], regions->regions,
           regions->count * sizeof *reach->regions);
    reach->region_count = count;
    return TTD_OK;
}

static enum ttd_status add_classes(struct heap_reach *reach, const struct ttd_classes *classes)
{
    if (classes->snapshot != reach->snapshot.number || !classes->count)
        return TTD_OK;
    enum ttd_status status =
        grow_array((void **)&reach->classes, &reach->class_capacity,
                   reach->class_count + classes->count, sizeof *reach->classes);
    if (status != TTD_OK)
        return status;
    memcpy(&reach->classes[reach->class_count], classes->classes,
           classes->count * sizeof *reach->classes);
    reach->class_count += classes->count;
    return TTD_OK;
}

static enum ttd_status take_batch(struct heap_reach *reach, const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        if (batch->kind == TTD_KIND_REGIONS)
            status = reach_add_regions(reach, &batch->u.regions[i]);
        else if (batch->kind == TTD_KIND_CLASSES)
            status = add_classes(reach, &batch->u.classes[i]);
    }
    return status;
}

/* Regions and classes have to be known before the words that lie in them. */
static enum ttd_status read_regions_and_classes(struct heap_reach *reach, struct ttd_reader *reader,
                                                struct ttd_error *error)
{
    enum ttd_status status =
        ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_REGIONS) | TTD_KIND_BIT(TTD_KIND_CLASSES));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        if (status == TTD_OK)
            status = take_batch(reach, &batch);
    }
    return heap_is_over(status) ? TTD_OK : status;
}

enum ttd_status heap_reach_read_regions(const struct heap_trace *trace,
                                        const struct ttd_snapshot *snapshot,
                                        struct heap_reach *reach, struct ttd_error *error)
{
    *reach = (struct heap_reach){.snapshot = *snapshot};
    return read_regions_and_classes(reach, trace->reader, error);
}

/* Distance of the prefetch, in references. */
#define AHEAD 32

static enum ttd_status see_references(struct reach_builder *builder,
                                      const struct reach_reference_group *group)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < group->count && status == TTD_OK; i++) {
        if (i + AHEAD < group->count && group->targets[i + AHEAD] != HEAP_NO_NODE)
            packed_table_prefetch(&builder->reach->nodes.table, group->targets[i + AHEAD]);
        status = reach_builder_add(builder, &group->references[i], group->targets[i]);
    }
    return status;
}

static enum ttd_status read_references(struct reach_builder *builder, struct ttd_reader *reader,
                                       struct ttd_error *error)
{
    struct reach_references references;
    enum ttd_status status = reach_references_begin(&references, builder, reader, error);
    while (status == TTD_OK) {
        const struct reach_reference_group *group;
        status = reach_references_next(&references, &group);
        if (status == TTD_OK)
            status = see_references(builder, group);
    }
    reach_references_end(&references);
    return heap_is_over(status) ? reach_builder_add_kept(builder) : status;
}

enum ttd_status heap_reach_begin(struct heap_reach *reach, const struct ttd_snapshot *snapshot,
                                 struct heap_replay *replay)
{
    reach->snapshot = *snapshot;
    enum ttd_status status = reach_in_flight_begin(reach, replay);
    if (status == TTD_OK)
        status = heap_nodes_copy(&reach->nodes, &replay->live);
    reach_in_flight_end(reach, &replay->live);
    return status;
}

enum ttd_status heap_reach_read(struct heap_reach *reach, const struct heap_trace *trace,
                                const struct heap_reach_options *options, struct ttd_error *error)
{
    struct ttd_snapshot *snapshot = &reach->snapshot;
    struct reach_builder builder;
    enum ttd_status status = read_regions_and_classes(reach, trace->reader, error);
    if (status != TTD_OK)
        return status;
    reach->offsets.is_without_sources =
        !options->keeps_offsets && (options->finds_classes_only || options->omits_verdicts);
    status = reach_builder_init(&builder, reach, options);
    builder.keeps_between = reach_is_inheriting(trace->reader);
    if (status == TTD_OK)
        status = read_references(&builder, trace->reader, error);
    /* Parts that are missing in a damaged file make the snapshot incomplete, as the recorder would
     * say it. */
    if (builder.seen != snapshot->references || reach->region_count != snapshot->regions)
        snapshot->flags |= TTD_SNAPSHOT_INCOMPLETE;
    if (status == TTD_OK)
        status = reach_inherited_apply(&builder, trace, error);
    if (status == TTD_OK)
        status = reach_within_apply(&builder);
    if (status == TTD_OK && !options->finds_classes_only)
        status = reach_in_flight_apply(&builder);
    if (status == TTD_OK)
        status = reach_builder_finish(&builder);
    bool has_verdicts = !options->omits_verdicts && !options->finds_classes_only;
    if (status == TTD_OK && has_verdicts)
        status = reach_rules_apply(&builder, options, &trace->hook.callers);
    reach_builder_free(&builder);
    return status == TTD_OK && !options->finds_classes_only
               ? reach_stale_apply(reach, trace, options, error)
               : status;
}

static enum ttd_status reach_choose_snapshot(const struct heap_trace *trace,
                                             const struct heap_reach_options *options,
                                             struct ttd_snapshot *chosen, struct ttd_error *error)
{
    struct heap_snapshots snapshots;
    enum ttd_status status = heap_snapshots_find(trace, &snapshots, error);
    if (status != TTD_OK)
        return status;
    const struct ttd_snapshot *snapshot =
        options->snapshot ? heap_snapshots_get(&snapshots, options->snapshot)
                          : heap_snapshots_before(&snapshots, options->at, TTD_SNAPSHOT_REFERENCES);
    bool has_references = snapshot && snapshot->contents & TTD_SNAPSHOT_REFERENCES;
    *chosen = has_references ? *snapshot : (struct ttd_snapshot){.number = 0};
    heap_snapshots_free(&snapshots);
    return TTD_OK;
}

static enum ttd_status reach_build(const struct heap_trace *trace,
                                   const struct heap_reach_options *options,
                                   const struct ttd_snapshot *snapshot, struct heap_reach *reach,
                                   struct ttd_error *error)
{
    struct heap_arrival arrival;
    struct heap_route route = {.to = snapshot->position};
    /* The live blocks are copied and the replay ends before the graph is built, which needs the
     * reader. */
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    if (status == TTD_OK)
        status = heap_reach_begin(reach, snapshot, &arrival.cursor.replay);
    heap_arrival_end(&arrival, &reach->outcome);
    return status == TTD_OK ? heap_reach_read(reach, trace, options, error) : status;
}

enum ttd_status heap_reach_build(const struct heap_trace *trace,
                                 const struct heap_reach_options *options,
                                 const struct ttd_snapshot *snapshot, struct heap_reach *reach,
                                 struct ttd_error *error)
{
    memset(reach, 0, sizeof *reach);
    enum ttd_status status = reach_build(trace, options, snapshot, reach, error);
    if (status != TTD_OK)
        heap_reach_free(reach);
    return status;
}

enum ttd_status heap_reach_find(const struct heap_trace *trace,
                                const struct heap_reach_options *options, struct heap_reach *reach,
                                struct ttd_error *error)
{
    struct ttd_snapshot snapshot;
    memset(reach, 0, sizeof *reach);
    enum ttd_status status = reach_choose_snapshot(trace, options, &snapshot, error);
    return status == TTD_OK && snapshot.number
               ? heap_reach_build(trace, options, &snapshot, reach, error)
               : status;
}

void heap_reach_free(struct heap_reach *reach)
{
    heap_nodes_free(&reach->nodes);
    graph_free(&reach->graph);
    graph_classes_free(&reach->verdicts);
    free(reach->in_flight);
    free(reach->regions);
    free(reach->roots);
    edge_offsets_free(&reach->offsets);
    free(reach->inner);
    free(reach->relics);
    free(reach->node_classes);
    free(reach->classes);
    memset(reach, 0, sizeof *reach);
}
