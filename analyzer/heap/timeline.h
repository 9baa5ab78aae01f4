/* SPDX-License-Identifier: MIT */
/** How much was live in the course of a trace, at a fixed number of points. */
#ifndef ANALYZER_HEAP_TIMELINE_H
#define ANALYZER_HEAP_TIMELINE_H

#include "heap/pass.h"
#include "heap/totals.h"

typedef enum heap_axis {
    /** Nanoseconds from the start: the wall time of the latest call. */
    HEAP_AXIS_TIME,
    /** Sequence of positions. */
    HEAP_AXIS_POSITION
} heap_axis;

/** A stretch of the axis. */
typedef struct heap_point {
    /** The largest number of live bytes at any position in it, the one it begins with included. */
    heap_sum peak;
    /** What is live at its end. */
    heap_total live;
    uint64_t allocations;
    heap_sum allocated;
    uint64_t releases;
    /** When it begins: over positions, the wall time of the first effect there or after. */
    uint64_t begin;
} heap_point;

typedef struct heap_timeline {
    /** Point i covers `width` values of the axis from first + i * width on. */
    uint64_t first;
    uint64_t width;
    heap_point *points;
    size_t count;
    size_t max;
    /** The wall time of the last call, with which the last point ends. */
    uint64_t end;
    heap_outcome outcome;
} heap_timeline;

/**
 * Goes through the whole trace.
 *
 * @param max       points at most, from 2 on; if the axis is long enough there are more than half
 * @param timeline  set on TTD_OK; release with heap_timeline_free()
 * Others and statuses as heap_pass_run().
 */
ttd_status heap_timeline_find(ttd_reader *reader, heap_axis axis, size_t max,
                              const heap_batch_hook *hook, heap_timeline *timeline,
                              ttd_error *error);
/** How long point `index` lasts, in nanoseconds. */
uint64_t heap_timeline_duration(const heap_timeline *timeline, size_t index);
void heap_timeline_free(heap_timeline *timeline);

#endif
