/* SPDX-License-Identifier: MIT */
/** Ticks: the heap at a bounded number of moments, and the changes between them, by call site,
 * thread and heap. */
#ifndef ANALYZER_ANALYSES_ACTIVITY_TICKS_H
#define ANALYZER_ANALYSES_ACTIVITY_TICKS_H

#include <stddef.h>
#include <stdint.h>
#include <ttdtrace/status.h>

#include "analyses/activity/timeline.h"
#include "base/hash_map.h"
#include "heap/groups.h"
#include "heap/heap_live.h"
#include "travel/pass.h"

/* Series: live bytes and blocks by stack, thread or heap in the course of a trace, as sparse
 * differences from tick to tick. */

/** The live bytes and blocks of one key, such as a stack. Sums and differences are modulo 2^64. */
struct heap_tick_record {
    ttd_id key;
    /** The thread that allocated its blocks, the first one if there are several; TTD_NONE if
     * unknown. */
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

/** A key that was looked up, and 1 more than the number of its record; 0 for none. */
struct heap_tick_found {
    ttd_id key;
    uint32_t record;
};

/** Number of keys that are found without the map. */
#define HEAP_TICK_FOUND 256

/** All zero but for the key of the map when empty. */
struct heap_tick_series {
    struct heap_tick_record *records;
    size_t count;
    size_t capacity;
    struct hash_map by_key;
    /** Keys that were looked up, each at its number modulo HEAP_TICK_FOUND; and the record that was
     * looked up last. */
    struct heap_tick_found found[HEAP_TICK_FOUND];
    uint32_t last_record;
    /** The changes of all ticks, in each tick by record; ends[i] is the index behind tick i's
     * entries. */
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

/** Looks a key up in the map, and adds its record if there is none. Sets last_record. */
enum ttd_status heap_series_look_up(struct heap_tick_series *series, ttd_id key);

/** Lists a record among those that have changed in the open tick. */
enum ttd_status heap_series_touch(struct heap_tick_series *series, uint32_t record);

/** Sets last_record to the number of a key's record; adds the record if there is none. */
static inline enum ttd_status heap_series_find(struct heap_tick_series *series, ttd_id key)
{
    const struct heap_tick_found *found = &series->found[key % HEAP_TICK_FOUND];
    if (found->key != key || !found->record)
        return heap_series_look_up(series, key);
    series->last_record = found->record - 1;
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
    enum ttd_status status = heap_series_find(series, key);
    if (status != TTD_OK)
        return status;
    struct heap_tick_record *record = &series->records[series->last_record];
    record->bytes += bytes;
    record->blocks += blocks;
    return record->is_touched ? TTD_OK : heap_series_touch(series, series->last_record);
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

/** Sets the thread that allocated the newest block. */
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

/* Spans: blocks by the tick of each block's allocation and the later tick of its release. With the
 * states at the ticks they give, for any range from tick to tick, how many blocks were allocated
 * and released inside or outside of it. */

/** Blocks that were allocated in one tick and released in another, and their bytes; sums are modulo
 * 2^64. */
struct heap_tick_span {
    uint64_t blocks;
    uint64_t bytes;
};

struct heap_tick_spans {
    /** By tick of the release, and for each by the earlier tick of the allocation: the entries of
     * tick 1, then of tick 2. */
    struct heap_tick_span *spans;
    /** Number of ticks that are one from the second on: 1 unless heap_spans_limit() has merged
     * some. The first tick is the state before the range, and stays by itself. */
    size_t width;
};

/** Makes room for `max` ticks. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_spans_init(struct heap_tick_spans *spans, size_t max);
void heap_spans_free(struct heap_tick_spans *spans);

/** Adds a block that was released in tick `end`, unless it was allocated in the same one. */
void heap_spans_add(struct heap_tick_spans *spans, size_t begin, size_t end, uint64_t size);

/** Returns the spans of the blocks that were released in a tick, by the tick of their allocation.
 */
const struct heap_tick_span *heap_spans_of(const struct heap_tick_spans *spans, size_t end);

/** Returns the number of these spans that have blocks. */
size_t heap_spans_count(const struct heap_tick_spans *spans, size_t end);

/**
 * Merges ticks.
 *
 * @param new_ticks  by tick: the number of the merged tick that it becomes part of, in increasing
 *                order
 * @param count      number of ticks before
 */
void heap_spans_merge(struct heap_tick_spans *spans, const uint32_t *new_ticks, size_t count);

/** Makes ticks wider, all but the first, until there are at most `max` spans with blocks. Sets
 * `count` to the number of ticks that are left. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_spans_limit(struct heap_tick_spans *spans, size_t *count, size_t max);

/** Properties of blocks that series are made by; sizes are in classes, see heap_class_of(). */
enum heap_tick_key {
    HEAP_TICK_BY_STACK,
    HEAP_TICK_BY_THREAD,
    HEAP_TICK_BY_HEAP,
    HEAP_TICK_BY_SIZE,
    HEAP_TICK_KEYS
};

/** A moment, and the stretch of events that ends with it. */
struct heap_tick {
    /** Position of the last effect in the stretch. */
    struct ttd_position position;
    /** Largest number of an event that has taken effect by `position`, and largest wall time of a
     * call by then. */
    uint64_t event;
    uint64_t wall_time;
    /** Blocks and bytes live at `position`. */
    struct heap_total live;
    /** Largest number of live bytes at any position of the stretch and at its beginning. */
    struct heap_sum peak;
    /** Numbers and bytes of allocations in the stretch, and number of releases. */
    uint64_t allocations;
    struct heap_sum allocated;
    uint64_t releases;
    /** Number of the stretch, counted from the start of the range in units of heap_ticks.width. */
    uint64_t stretch;
};

struct heap_ticks_options {
    /** The first position of the range, and the last one. */
    struct ttd_position from;
    struct ttd_position last;
    /** Limit on the number of ticks, at least 4. Where it is reached, stretches are made twice as
     * long. */
    size_t max;
    /** Limit on the changes in the series by stack, beside four for each stack. Also kept by making
     * stretches longer. */
    size_t changes_max;
    /** Limit on the spans that have blocks. */
    size_t spans_max;
    /** NULL if all blocks count. */
    heap_stack_filter filter;
    void *filter_context;
    /** Counts only blocks that were allocated in these islands; NULL for all. */
    const struct heap_islands *islands;
};

struct ticks_finder;

struct heap_ticks {
    struct heap_outcome outcome;
    /** The first tick is the state before the range; it has no stretch. */
    struct heap_tick *ticks;
    size_t count;
    /** Number of events in a stretch. */
    uint64_t width;
    struct heap_tick_series series[HEAP_TICK_KEYS];
    /** Blocks that outlive the tick of their allocation and are released; their own ticks
     * (`span_count`) are as wide as the limit asks for. */
    struct heap_tick_spans spans;
    size_t span_count;
    /** The peak of all blocks, from the start of the trace to the end of the range; and the blocks
     * live there that the filter and the islands let pass. */
    struct heap_peak peak;
    struct heap_groups at_peak;
    /** The tick that the peak would end, within another one: its stretch begins where the other's
     * does. Valid if `has_peak_tick`, that is if all blocks count and the peak is in the range; so
     * is `peak_sums`, the live sums by record of each series, except by stack.
     */
    bool has_peak_tick;
    struct heap_tick peak_tick;
    struct heap_tick_change *peak_sums[HEAP_TICK_KEYS];
    /** Private; NULL after heap_ticks_end(). */
    struct ticks_finder *finder;
};

void heap_ticks_free(struct heap_ticks *ticks);

/**
 * Makes the ticks a part of a pass from the start of the trace to the end of the range.
 *
 * @param options  copied
 * @param ticks    release with heap_ticks_free(), also on failure; stays where it is
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_ticks_watch(struct heap_ticks *ticks, const struct heap_ticks_options *options,
                                 struct ttd_reader *reader, struct heap_pass *pass);

/** Completes them when the pass has ended. */
void heap_ticks_end(struct heap_ticks *ticks);

#endif
