/* SPDX-License-Identifier: MIT */
#include "analyses/activity/ticks.h"

#include <stdlib.h>

#include "base/grow.h"

/* Late changes that are kept until they are settled. */
#define LATE_MAX ((size_t)1 << 20)

/* If fewer than one record in so many has changed, sorting them is faster than looking at all. */
#define MANY_TOUCHED 16

void heap_series_init(struct heap_tick_series *series)
{
    *series = (struct heap_tick_series){.count = 0};
    map_init(&series->by_key);
}

void heap_series_free(struct heap_tick_series *series)
{
    free(series->records);
    map_free(&series->by_key);
    free(series->changes);
    free(series->ends);
    free(series->touched);
    free(series->late);
    *series = (struct heap_tick_series){.count = 0};
}

/* Adds a record of a key that has none. */
static enum ttd_status series_add_key(struct heap_tick_series *series, ttd_id key)
{
    enum ttd_status status = grow_array((void **)&series->records, &series->capacity,
                                        series->count + 1, sizeof *series->records);
    if (status == TTD_OK)
        status = map_set(&series->by_key, key, 0, (uint32_t)series->count);
    if (status == TTD_OK)
        series->records[series->count++] = (struct heap_tick_record){.key = key};
    return status;
}

enum ttd_status heap_series_look_up(struct heap_tick_series *series, ttd_id key)
{
    uint32_t record = map_get(&series->by_key, key, 0);
    enum ttd_status status = TTD_OK;
    if (record == MAP_NONE) {
        record = (uint32_t)series->count;
        status = series_add_key(series, key);
    }
    if (status != TTD_OK)
        return status;
    series->found[key % HEAP_TICK_FOUND] = (struct heap_tick_found){key, record + 1};
    series->last_record = record;
    return TTD_OK;
}

enum ttd_status heap_series_touch(struct heap_tick_series *series, uint32_t record)
{
    enum ttd_status status = grow_array((void **)&series->touched, &series->touched_capacity,
                                        series->touched_count + 1, sizeof *series->touched);
    if (status != TTD_OK)
        return status;
    series->records[record].is_touched = true;
    series->touched[series->touched_count++] = record;
    return TTD_OK;
}

enum ttd_status heap_series_take_late(struct heap_tick_series *series, uint32_t tick, ttd_id key,
                                      uint64_t size)
{
    enum ttd_status status = heap_series_find(series, key);
    uint32_t index = series->last_record;
    if (status == TTD_OK && series->late_count >= LATE_MAX)
        status = heap_series_settle(series, NULL);
    if (status == TTD_OK)
        status = grow_array((void **)&series->late, &series->late_capacity, series->late_count + 1,
                            sizeof *series->late);
    if (status != TTD_OK)
        return status;
    series->late[series->late_count++] =
        (struct heap_late_change){tick, {index, -(int64_t)size, -1}};
    struct heap_tick_record *record = &series->records[index];
    /* No change of the open tick. */
    record->bytes -= size;
    record->told_bytes -= size;
    record->blocks--;
    record->told_blocks--;
    return TTD_OK;
}

static int series_compare_numbers(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static enum ttd_status series_add_change(struct heap_tick_series *series,
                                         const struct heap_tick_change *change)
{
    if (!change->bytes && !change->blocks)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&series->changes, &series->change_capacity,
                                        series->change_count + 1, sizeof *series->changes);
    if (status == TTD_OK)
        series->changes[series->change_count++] = *change;
    return status;
}

static enum ttd_status add_tick(struct heap_tick_series *series)
{
    enum ttd_status status = grow_array((void **)&series->ends, &series->tick_capacity,
                                        series->tick_count + 1, sizeof *series->ends);
    if (status == TTD_OK)
        series->ends[series->tick_count++] = series->change_count;
    return status;
}

/* Sorts the numbers of the records that have changed. If many have, it is faster to look for them
 * among all records, in order. */
static void series_sort_touched(struct heap_tick_series *series)
{
    size_t count = 0;
    if (series->touched_count < series->count / MANY_TOUCHED) {
        qsort(series->touched, series->touched_count, sizeof *series->touched,
              series_compare_numbers);
        return;
    }
    for (uint32_t i = 0; count < series->touched_count; i++) {
        if (series->records[i].is_touched)
            series->touched[count++] = i;
    }
}

enum ttd_status heap_series_end_tick(struct heap_tick_series *series)
{
    enum ttd_status status = TTD_OK;
    if (series->touched_count)
        series_sort_touched(series);
    for (size_t i = 0; i < series->touched_count && status == TTD_OK; i++) {
        struct heap_tick_record *record = &series->records[series->touched[i]];
        struct heap_tick_change change = {series->touched[i],
                                          (int64_t)(record->bytes - record->told_bytes),
                                          (int64_t)(record->blocks - record->told_blocks)};
        record->told_bytes = record->bytes;
        record->told_blocks = record->blocks;
        record->is_touched = false;
        status = series_add_change(series, &change);
    }
    series->touched_count = 0;
    return status == TTD_OK ? add_tick(series) : status;
}

/* ---- Settling ---- */

/** The sums of the changes of one tick, while ticks are merged. */
struct merging {
    struct heap_tick_series *series;
    /** By record: the sum of its changes, and whether it is in `order`. */
    struct heap_tick_change *sums;
    bool *is_listed;
    uint32_t *order;
    size_t count;
};

static void series_collect_change(struct merging *merging, const struct heap_tick_change *change)
{
    struct heap_tick_change *sum = &merging->sums[change->record];
    if (!merging->is_listed[change->record]) {
        merging->is_listed[change->record] = true;
        merging->order[merging->count++] = change->record;
        *sum = (struct heap_tick_change){.record = change->record};
    }
    sum->bytes = (int64_t)((uint64_t)sum->bytes + (uint64_t)change->bytes);
    sum->blocks += change->blocks;
}

static enum ttd_status series_end_merged(struct merging *merging)
{
    enum ttd_status status = TTD_OK;
    if (merging->count)
        qsort(merging->order, merging->count, sizeof *merging->order, series_compare_numbers);
    for (size_t i = 0; i < merging->count && status == TTD_OK; i++) {
        merging->is_listed[merging->order[i]] = false;
        status = series_add_change(merging->series, &merging->sums[merging->order[i]]);
    }
    merging->count = 0;
    return status == TTD_OK ? add_tick(merging->series) : status;
}

static int series_compare_late(const void *a, const void *b)
{
    const struct heap_late_change *x = a, *y = b;
    return (x->tick > y->tick) - (x->tick < y->tick);
}

/* Goes through the ticks as they were, and moves their changes and late changes into new ticks. */
static enum ttd_status merge_ticks(struct merging *merging, const struct heap_tick_series *old,
                                   const uint32_t *new_ticks)
{
    enum ttd_status status = TTD_OK;
    size_t next = 0, next_late = 0;
    for (size_t tick = 0; tick < old->tick_count && status == TTD_OK; tick++) {
        for (; next < old->ends[tick]; next++)
            series_collect_change(merging, &old->changes[next]);
        for (; next_late < old->late_count && old->late[next_late].tick == tick; next_late++)
            series_collect_change(merging, &old->late[next_late].change);
        bool is_last = tick + 1 == old->tick_count;
        if (is_last || !new_ticks || new_ticks[tick + 1] != new_ticks[tick])
            status = series_end_merged(merging);
    }
    return status;
}

enum ttd_status heap_series_settle(struct heap_tick_series *series, const uint32_t *new_ticks)
{
    if (!series->count || (!series->late_count && !new_ticks)) {
        series->tick_count = new_ticks && series->tick_count ? new_ticks[series->tick_count - 1] + 1
                                                             : series->tick_count;
        return TTD_OK;
    }
    struct heap_tick_series old = *series;
    struct merging merging = {.series = series,
                              .sums = malloc(series->count * sizeof *merging.sums),
                              .is_listed = calloc(series->count, sizeof *merging.is_listed),
                              .order = malloc(series->count * sizeof *merging.order)};
    bool has_memory = merging.sums && merging.is_listed && merging.order;
    enum ttd_status status = has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        if (old.late_count)
            qsort(old.late, old.late_count, sizeof *old.late, series_compare_late);
        series->changes = NULL;
        series->ends = NULL;
        series->change_count = series->change_capacity = 0;
        series->tick_count = series->tick_capacity = 0;
        status = merge_ticks(&merging, &old, new_ticks);
        series->late_count = 0;
        free(old.changes);
        free(old.ends);
    }
    free(merging.sums);
    free(merging.is_listed);
    free(merging.order);
    return status;
}
