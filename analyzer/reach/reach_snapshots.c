/* SPDX-License-Identifier: MIT */
/* Reading snapshots: which there are, and the references of one. */
#include "reach/reach.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "reach/builder.h"

static enum ttd_status snapshots_add_batch(struct heap_snapshots *snapshots,
                                           const struct ttd_batch *batch)
{
    enum ttd_status status =
        grow_array((void **)&snapshots->snapshots, &snapshots->capacity,
                   snapshots->count + batch->count, sizeof *snapshots->snapshots);
    if (status != TTD_OK)
        return status;
    memcpy(&snapshots->snapshots[snapshots->count], batch->u.snapshots,
           batch->count * sizeof *snapshots->snapshots);
    snapshots->count += batch->count;
    return TTD_OK;
}

enum ttd_status heap_snapshots_find(const struct heap_trace *trace,
                                    struct heap_snapshots *snapshots, struct ttd_error *error)
{
    *snapshots = (struct heap_snapshots){.count = 0};
    enum ttd_status status = ttd_reader_rewind(trace->reader, TTD_KIND_BIT(TTD_KIND_SNAPSHOTS));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, error);
        if (status == TTD_OK && batch.kind == TTD_KIND_SNAPSHOTS)
            status = snapshots_add_batch(snapshots, &batch);
    }
    if (heap_is_over(status))
        return TTD_OK;
    heap_snapshots_free(snapshots);
    return status;
}

void heap_snapshots_free(struct heap_snapshots *snapshots)
{
    free(snapshots->snapshots);
    *snapshots = (struct heap_snapshots){.count = 0};
}

const struct ttd_snapshot *heap_snapshots_before(const struct heap_snapshots *snapshots,
                                                 struct ttd_position position, uint32_t contents)
{
    const struct ttd_snapshot *newest = NULL;
    for (size_t i = 0; i < snapshots->count; i++) {
        const struct ttd_snapshot *snapshot = &snapshots->snapshots[i];
        if ((snapshot->contents & contents) == contents &&
            ttd_position_compare(snapshot->position, position) <= 0 &&
            (!newest || ttd_position_compare(snapshot->position, newest->position) >= 0))
            newest = snapshot;
    }
    return newest;
}

const struct ttd_snapshot *heap_snapshots_after(const struct heap_snapshots *snapshots,
                                                struct ttd_position position, uint32_t contents)
{
    const struct ttd_snapshot *oldest = NULL;
    for (size_t i = 0; i < snapshots->count; i++) {
        const struct ttd_snapshot *snapshot = &snapshots->snapshots[i];
        if ((snapshot->contents & contents) == contents &&
            ttd_position_compare(snapshot->position, position) >= 0 &&
            (!oldest || ttd_position_compare(snapshot->position, oldest->position) < 0))
            oldest = snapshot;
    }
    return oldest;
}

const struct ttd_snapshot *heap_snapshots_get(const struct heap_snapshots *snapshots,
                                              uint32_t number)
{
    for (size_t i = 0; i < snapshots->count; i++) {
        if (snapshots->snapshots[i].number == number)
            return &snapshots->snapshots[i];
    }
    return NULL;
}

/* References of a group: so few that all groups stay in the cache. */
#define GROUP 8192

/* Finds the next references of the snapshot. The chunks of all snapshots are of one kind:
 * the other ones' are passed over. */
static enum ttd_status reach_find_record(struct reach_references *references)
{
    const struct ttd_batch *batch = &references->batch;
    for (;; references->next_record++, references->next_reference = 0) {
        while (references->next_record == batch->count) {
            enum ttd_status status =
                ttd_reader_next(references->reader, &references->batch, references->error);
            if (status != TTD_OK)
                return status;
            if (batch->kind != TTD_KIND_REFERENCES)
                references->batch.count = 0;
            references->next_record = 0;
        }
        const struct ttd_references *record = &batch->u.references[references->next_record];
        bool is_of_snapshot = record->snapshot == references->builder->reach->snapshot.number;
        if (is_of_snapshot && !references->next_reference)
            references->builder->seen += record->count;
        if (is_of_snapshot && references->next_reference < record->count)
            return TTD_OK;
    }
}

static void reach_take_reference_group(struct reach_references *references,
                                       struct reach_reference_group *group)
{
    const struct ttd_references *record = &references->batch.u.references[references->next_record];
    for (; references->next_reference < record->count && group->count < GROUP;
         references->next_reference++) {
        const struct ttd_reference *reference = &record->references[references->next_reference];
        /* Only these are worth looking up their values. */
        if (reach_builder_lies_in_region(references->builder, reference) &&
            (!references->builder->finds_classes_only ||
             reach_builder_may_be_class(references->builder, reference->value)))
            group->references[group->count++] = *reference;
    }
}

/* Values are looked up in batches, so that cache misses of one search overlap with the misses of
 * others. */
static void reach_look_up_references(struct reach_references *references,
                                     struct reach_reference_group *group)
{
    const struct heap_nodes *nodes = &references->builder->reach->nodes;
    for (size_t i = 0; i < group->count; i += ADDRESS_BATCH) {
        uint64_t values[ADDRESS_BATCH];
        uint32_t *targets = group->targets + i;
        size_t count = group->count - i < ADDRESS_BATCH ? group->count - i : ADDRESS_BATCH;
        for (size_t j = 0; j < count; j++)
            values[j] = group->references[i + j].value;
        /* First how many nodes begin at the value or before. */
        address_index_count_batch(&references->index, &nodes->table, values, count, targets);
        for (size_t j = 0; j < count; j++) {
            if (targets[j])
                packed_table_prefetch(&nodes->table, targets[j] - 1);
        }
        for (size_t j = 0; j < count; j++)
            targets[j] = heap_nodes_innermost(nodes, targets[j], values[j]);
    }
}

/* Reads a group, and hands it over. Returns whether there may be another that the caller wants. */
static bool reach_read_group(struct reach_references *references)
{
    struct reach_reference_group *group = &references->groups[references->ring.head % REACH_GROUPS];
    enum ttd_status status = TTD_OK;
    group->count = 0;
    while (group->count < GROUP && (status = reach_find_record(references)) == TTD_OK)
        reach_take_reference_group(references, group);
    reach_look_up_references(references, group);
    references->status = status;
    return ring_fill(&references->ring, REACH_GROUPS - 1) && status == TTD_OK;
}

/* The thread. */
static void *reach_read_references_ahead(void *argument)
{
    struct reach_references *references = argument;
    while (reach_read_group(references))
        ;
    ring_end_filling(&references->ring);
    return NULL;
}

enum ttd_status reach_references_begin(struct reach_references *references,
                                       struct reach_builder *builder, struct ttd_reader *reader,
                                       struct ttd_error *error)
{
    *references = (struct reach_references){.builder = builder, .reader = reader, .error = error};
    ring_init(&references->ring, REACH_GROUPS);
    enum ttd_status status = address_index_share(&references->index, &builder->reach->nodes.index);
    for (unsigned i = 0; i < REACH_GROUPS && status == TTD_OK; i++) {
        struct reach_reference_group *group = &references->groups[i];
        group->references = malloc(GROUP * sizeof *group->references);
        group->targets = malloc(GROUP * sizeof *group->targets);
        if (!group->references || !group->targets)
            status = TTD_ERROR_NO_MEMORY;
    }
    if (status == TTD_OK)
        status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_REFERENCES));
    references->status = status;
    /* The first group is read here: of a small snapshot there is no other. Without a free thread
     * the others are, too. */
    if (status == TTD_OK && reach_read_group(references))
        references->is_running =
            pthread_create(&references->thread, NULL, reach_read_references_ahead, references) == 0;
    return status;
}

void reach_references_end(struct reach_references *references)
{
    if (references->is_running) {
        ring_end_taking(&references->ring);
        pthread_join(references->thread, NULL);
    }
    for (unsigned i = 0; i < REACH_GROUPS; i++) {
        free(references->groups[i].references);
        free(references->groups[i].targets);
    }
    address_index_unshare(&references->index);
    ring_destroy(&references->ring);
    *references = (struct reach_references){.builder = NULL};
}

enum ttd_status reach_references_next(struct reach_references *references,
                                      const struct reach_reference_group **group)
{
    struct ring *ring = &references->ring;
    if (references->holds)
        ring_empty(ring);
    if (!references->is_running && !ring_count(ring) && references->status == TTD_OK)
        (void)reach_read_group(references);
    references->holds = references->is_running ? ring_wait_filled(ring) : ring_count(ring) != 0;
    *group = &references->groups[ring->tail % REACH_GROUPS];
    /* References that were read before the end or the failure are returned first. */
    return references->holds ? TTD_OK : references->status;
}
