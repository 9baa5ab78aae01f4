/* SPDX-License-Identifier: MIT */
/** Series: live bytes and blocks by stack, thread or heap in the course of a trace, as sparse
 * differences from tick to tick. */
#ifndef ANALYZER_ANALYSES_ACTIVITY_TICK_SERIES_H
#define ANALYZER_ANALYSES_ACTIVITY_TICK_SERIES_H

#include "base/hash_map.h"
#include "heap/heap_live.h"

/** The live bytes and blocks of one key, such as a stack. Sums and differences are modulo 2^64. */
struct heap_tick_record {
    ttd_id key;
    /** The thread that allocated its blocks, the first one if there are several; TTD_NONE if nobody
     * told it. */
    ttd_id thread;
    uint64_t bytes;
    uint64_t blocks;
    /** The sums at the end of the last tick that has ended. */
    uint64_t told_bytes;
    uint64_t told_blocks;
    /** The record is listed in heap_tick_series.touched. */
    bool is_touched;
    bool has_several_threads;
};

/** A change of a record within a tick. */
struct heap_tick_change {
    uint32_t record;
    int64_t bytes;
    int64_t blocks;
};

/** The end of a block in an earlier tick than the open one. */
struct heap_late_change {
    uint32_t tick;
    struct heap_tick_change change;
};

/** All zero but for the key of the map when empty. */
struct heap_tick_series {
    struct heap_tick_record *records;
    size_t count;
    size_t capacity;
    struct hash_map by_key;
    /** The key that was looked up last and its record, if there is any record: most blocks are of
     * few threads, heaps and sizes. */
    ttd_id last_key;
    uint32_t last_record;
    /** The changes of all ticks, in each tick by record; ends[i] is the index behind those of
     * tick i. */
    struct heap_tick_change *changes;
    size_t change_count;
    size_t change_capacity;
    size_t *ends;
    size_t tick_count;
    size_t tick_capacity;
    /** Records that have changed in the open tick. */
    uint32_t *touched;
    size_t touched_count;
    size_t touched_capacity;
    struct heap_late_change *late;
    size_t late_count;
    size_t late_capacity;
};

void heap_series_init(struct heap_tick_series *series);
void heap_series_free(struct heap_tick_series *series);

/* All return TTD_OK or TTD_ERROR_NO_MEMORY. */

/** Adds a record of a key, which has none, and sets `record` to its number. */
enum ttd_status heap_series_add_key(struct heap_tick_series *series, ttd_id key, uint32_t *record);

/** Lists a record among those that have changed in the open tick. */
enum ttd_status heap_series_touch(struct heap_tick_series *series, uint32_t record);

/** Sets `record` to the number of a key's record, which is added if there is none. */
static inline enum ttd_status heap_series_find(struct heap_tick_series *series, ttd_id key,
                                               uint32_t *record)
{
    *record = series->last_record;
    if (series->count && series->last_key == key)
        return TTD_OK;
    *record = map_get(&series->by_key, key, 0);
    if (*record == MAP_NONE)
        return heap_series_add_key(series, key, record);
    series->last_key = key;
    series->last_record = *record;
    return TTD_OK;
}

/** Prefetches the record of a key that will be needed soon. Always inlined, because gcc removes
 * calls of a function that does nothing but prefetch. */
static inline __attribute__((always_inline)) void
heap_series_prefetch(const struct heap_tick_series *series, ttd_id key)
{
    uint32_t record = map_get(&series->by_key, key, 0);
    if (record != MAP_NONE)
        __builtin_prefetch(&series->records[record], 1);
}

/** Adds to the sums of a key in the open tick, modulo 2^64. */
static inline enum ttd_status heap_series_change(struct heap_tick_series *series, ttd_id key,
                                                 uint64_t bytes, uint64_t blocks)
{
    uint32_t number;
    enum ttd_status status = heap_series_find(series, key, &number);
    if (status != TTD_OK)
        return status;
    struct heap_tick_record *record = &series->records[number];
    record->bytes += bytes;
    record->blocks += blocks;
    return record->is_touched ? TTD_OK : heap_series_touch(series, number);
}

/** Adds a block to the sums of a key, or subtracts it from them, in the open tick. */
static inline enum ttd_status heap_series_add(struct heap_tick_series *series, ttd_id key,
                                              uint64_t size)
{
    return heap_series_change(series, key, size, 1);
}

static inline enum ttd_status heap_series_take(struct heap_tick_series *series, ttd_id key,
                                               uint64_t size)
{
    return heap_series_change(series, key, -size, -UINT64_C(1));
}

/** Tells which thread allocated the block that was added last. */
static inline void heap_series_tell_thread(struct heap_tick_series *series, ttd_id thread)
{
    struct heap_tick_record *record = &series->records[series->last_record];
    if (record->thread == TTD_NONE)
        record->thread = thread;
    else if (record->thread != thread)
        record->has_several_threads = true;
}

/** Subtracts a block in a tick that has ended. Takes effect with heap_series_settle(). */
enum ttd_status heap_series_take_late(struct heap_tick_series *series, uint32_t tick, ttd_id key,
                                      uint64_t size);

/** Ends the open tick. */
enum ttd_status heap_series_end_tick(struct heap_tick_series *series);

/**
 * Applies late changes, and merges ticks that have ended.
 *
 * @param new_ticks  by tick: the number of the merged tick that it becomes part of, in increasing
 *                order; NULL to merge none
 */
enum ttd_status heap_series_settle(struct heap_tick_series *series, const uint32_t *new_ticks);

#endif
