/* SPDX-License-Identifier: MIT */
/** Ticks: the heap at a bounded number of moments, and what changed between them, by call site,
 * thread and heap. */
#ifndef ANALYZER_ANALYSES_ACTIVITY_TICKS_H
#define ANALYZER_ANALYSES_ACTIVITY_TICKS_H

#include "analyses/activity/tick_series.h"
#include "analyses/activity/timeline.h"
#include "heap/groups.h"
#include "travel/pass.h"

/** The properties that have a series each; sizes by heap_class_of(). */
enum heap_tick_key {
    HEAP_TICK_BY_STACK,
    HEAP_TICK_BY_THREAD,
    HEAP_TICK_BY_HEAP,
    HEAP_TICK_BY_SIZE,
    HEAP_TICK_KEYS
};

/** A moment, and the stretch that ends with it. */
struct heap_tick {
    /** The last position in it at which something happened; and the largest number of an event
     * that had an effect by then, and the largest wall time of a call by then. */
    struct ttd_position position;
    uint64_t event;
    uint64_t wall_time;
    /** The state at the position. */
    struct heap_total live;
    /** The largest number of live bytes at any position in it, the one it begins with included. */
    struct heap_sum peak;
    uint64_t allocations;
    struct heap_sum allocated;
    uint64_t releases;
    /** The stretch of `width` events in which it lies. */
    uint64_t stretch;
};

struct heap_ticks_options {
    /** The first position of the range, and the last one. */
    struct ttd_position from;
    struct ttd_position last;
    /** Ticks at most, from 4 on; and changes of call sites at most, beside four for each site. More
     * make fewer ticks. */
    size_t max;
    size_t changes_max;
    /** NULL if all blocks count. */
    heap_stack_filter filter;
    void *filter_context;
};

struct ticks_finder;

struct heap_ticks {
    struct heap_outcome outcome;
    /** The first tick is the state before the range: it has no stretch. */
    struct heap_tick *ticks;
    size_t count;
    /** Events in a stretch. */
    uint64_t width;
    struct heap_tick_series series[HEAP_TICK_KEYS];
    /** The first position of the trace up to the end of the range with most bytes live, of all
     * blocks; and what was live there, of blocks that count. */
    struct heap_peak peak;
    struct heap_groups at_peak;
    /** Until heap_ticks_end(). */
    struct ticks_finder *finder;
};

void heap_ticks_free(struct heap_ticks *ticks);

/**
 * Makes the ticks a part of a pass from the start of the trace to the end of the range, which keeps
 * the peak.
 *
 * @param options  copied
 * @param ticks    release with heap_ticks_free(), also on failure; stays where it is
 * @param watcher  set on TTD_OK
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_ticks_watch(struct heap_ticks *ticks, const struct heap_ticks_options *options,
                                 struct ttd_reader *reader, struct heap_watcher *watcher);

/** Completes them when the pass has ended; the outcome is the caller's. */
void heap_ticks_end(struct heap_ticks *ticks);

#endif
