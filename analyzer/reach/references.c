/* SPDX-License-Identifier: MIT */
#include "reach/references.h"

#include <stdlib.h>

/* References of a group: so many that a thread is worth its start, and so few that both groups stay
 * in the cache. */
#define GROUP 32768

/* Finds the next references of the snapshot. The chunks of all snapshots are of one kind: those of
 * others are passed over. */
static enum ttd_status find_record(struct reach_references *references)
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

/* Whether a reference is worth looking up its value. */
static bool is_taken(struct reach_builder *builder, const struct ttd_reference *reference)
{
    return reach_builder_lies_in_region(builder, reference) &&
           (!builder->finds_classes_only || reach_builder_may_be_class(builder, reference->value));
}

static void take(struct reach_references *references, struct reach_reference_group *group)
{
    const struct ttd_references *record = &references->batch.u.references[references->next_record];
    for (; references->next_reference < record->count && group->count < GROUP;
         references->next_reference++) {
        const struct ttd_reference *reference = &record->references[references->next_reference];
        if (is_taken(references->builder, reference))
            group->references[group->count++] = *reference;
    }
}

/* Values are looked up in batches, so that cache misses of one search overlap with those of
 * others. */
static void look_up(struct reach_references *references, struct reach_reference_group *group)
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

/* Fills the group that the caller does not have: the task. */
static enum ttd_status fill(void *context)
{
    struct reach_references *references = context;
    struct reach_reference_group *group = &references->groups[1 - references->current];
    enum ttd_status status = TTD_OK;
    group->count = 0;
    while (group->count < GROUP && (status = find_record(references)) == TTD_OK)
        take(references, group);
    look_up(references, group);
    return status;
}

enum ttd_status reach_references_begin(struct reach_references *references,
                                       struct reach_builder *builder, struct ttd_reader *reader,
                                       struct ttd_error *error)
{
    *references = (struct reach_references){.builder = builder, .reader = reader, .error = error};
    enum ttd_status status = address_index_share(&references->index, &builder->reach->nodes.index);
    for (unsigned i = 0; i < 2 && status == TTD_OK; i++) {
        struct reach_reference_group *group = &references->groups[i];
        group->references = malloc(GROUP * sizeof *group->references);
        group->targets = malloc(GROUP * sizeof *group->targets);
        if (!group->references || !group->targets)
            status = TTD_ERROR_NO_MEMORY;
    }
    if (status == TTD_OK)
        status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_REFERENCES));
    /* The first group is read here: of a small snapshot there is no other. */
    references->task.status = status == TTD_OK ? fill(references) : status;
    return status;
}

void reach_references_end(struct reach_references *references)
{
    (void)task_wait(&references->task);
    for (unsigned i = 0; i < 2; i++) {
        free(references->groups[i].references);
        free(references->groups[i].targets);
    }
    address_index_unshare(&references->index);
    *references = (struct reach_references){.builder = NULL};
}

enum ttd_status reach_references_next(struct reach_references *references,
                                      const struct reach_reference_group **group)
{
    enum ttd_status status = task_wait(&references->task);
    references->current = 1 - references->current;
    *group = &references->groups[references->current];
    if (status == TTD_OK) {
        task_start(&references->task, fill, references);
        return TTD_OK;
    }
    /* References that were read before the end or the failure are returned first. */
    references->groups[1 - references->current].count = 0;
    references->task.status = status;
    return (*group)->count ? TTD_OK : status;
}
