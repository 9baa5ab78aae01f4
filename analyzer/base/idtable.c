/* SPDX-License-Identifier: MIT */
#include "base/idtable.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/table.h"

#define FIRST_CAPACITY 16

void idtable_init(struct idtable *table, size_t record_size)
{
    *table = (struct idtable){.record_size = record_size};
}

void idtable_free(struct idtable *table)
{
    for (size_t i = 0; i < table->run_count; i++)
        table_free(table->runs[i].records, table->runs[i].capacity * table->record_size);
    free(table->runs);
    idtable_init(table, table->record_size);
}

/* Finds the run to append `id` to: the last one, or a new one after it; NULL if `id` is not new. */
static enum ttd_status run_for(struct idtable *table, ttd_id id, struct idtable_run **run)
{
    *run = NULL;
    if (table->run_count) {
        struct idtable_run *last = &table->runs[table->run_count - 1];
        uint64_t next = (uint64_t)last->first + last->count;
        if (id == next)
            *run = last;
        if (id <= next)
            return TTD_OK;
    }
    enum ttd_status status = grow_array((void **)&table->runs, &table->run_capacity,
                                        table->run_count + 1, sizeof *table->runs);
    if (status != TTD_OK)
        return status;
    *run = &table->runs[table->run_count++];
    **run = (struct idtable_run){.first = id};
    return TTD_OK;
}

/* Makes room for one more record. */
static enum ttd_status idtable_reserve(struct idtable_run *run, size_t record_size)
{
    if (run->count < run->capacity)
        return TTD_OK;
    if (run->capacity > SIZE_MAX / 2 / record_size)
        return TTD_ERROR_NO_MEMORY;
    size_t capacity = run->capacity ? 2 * run->capacity : FIRST_CAPACITY;
    void *records = table_resize(run->records, run->capacity * record_size, capacity * record_size);
    if (!records)
        return TTD_ERROR_NO_MEMORY;
    run->records = records;
    run->capacity = capacity;
    return TTD_OK;
}

enum ttd_status idtable_add(struct idtable *table, ttd_id id, void **record)
{
    *record = NULL;
    struct idtable_run *run;
    enum ttd_status status = run_for(table, id, &run);
    if (status != TTD_OK || !run)
        return status;
    status = idtable_reserve(run, table->record_size);
    if (status != TTD_OK)
        return status;
    *record = (char *)run->records + run->count++ * table->record_size;
    return TTD_OK;
}

void *idtable_get(const struct idtable *table, ttd_id id)
{
    size_t low = 0;
    size_t high = table->run_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct idtable_run *run = &table->runs[middle];
        if (id < run->first)
            high = middle;
        else if (id - run->first >= run->count)
            low = middle + 1;
        else
            return (char *)run->records + (id - run->first) * table->record_size;
    }
    return NULL;
}

size_t idtable_count(const struct idtable *table)
{
    size_t count = 0;
    for (size_t i = 0; i < table->run_count; i++)
        count += table->runs[i].count;
    return count;
}
