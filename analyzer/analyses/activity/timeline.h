/* SPDX-License-Identifier: MIT */
/** A timeline: the live bytes in the course of a trace, at a bounded number of points. */
#ifndef ANALYZER_ANALYSES_ACTIVITY_TIMELINE_H
#define ANALYZER_ANALYSES_ACTIVITY_TIMELINE_H

#include "heap/totals.h"
#include "travel/islands.h"
#include "travel/replay_to.h"

enum heap_axis {
    /** Nanoseconds from the start: the wall time of the latest call. */
    HEAP_AXIS_TIME,
    /** Events, in the order of their effects. The distance of two positions does not show how much
     * happened between them, so positions themselves make no useful axis. */
    HEAP_AXIS_POSITION
};

/** A stretch of the axis. */
struct heap_point {
    /** Largest number of live bytes at any position of the stretch and at its beginning. */
    struct heap_sum peak;
    /** Blocks and bytes live at the end of the stretch. */
    struct heap_total live;
    uint64_t allocations;
    struct heap_sum allocated;
    uint64_t releases;
    /** Position of the first effect in the stretch or after it. */
    struct ttd_position position;
    /** Wall time of that effect; on HEAP_AXIS_TIME the value of the axis where the stretch
     * begins. */
    uint64_t begin;
    /** The most resident and mapped bytes of the samples in the stretch; both 0 without a sample.
     */
    uint64_t resident;
    uint64_t mapped;
};

struct heap_timeline {
    struct heap_outcome outcome;
    /** Point i covers `width` values of the axis, from first + i * width on. Both are round numbers
     * if the trace records its length. */
    uint64_t first;
    uint64_t width;
    struct heap_point *points;
    size_t count;
    size_t max;
    /** Wall time of the last call, where the last point ends. */
    uint64_t end;
    struct heap_memory_samples memory;
};

struct heap_timeline_options {
    enum heap_axis axis;
    /** Limit on the number of points, at least 2. There are at least two fifths of it, unless the
     * axis is too short. */
    size_t max;
    /** NULL if all blocks count. */
    heap_stack_filter filter;
    void *filter_context;
    /** Counts only blocks that were allocated in these islands; NULL for all. */
    const struct heap_islands *islands;
};

/**
 * Replays the whole trace, after reading its samples of memory.
 *
 * @param timeline  set on TTD_OK; release with heap_timeline_free()
 * @return as heap_replay_to(), or the filter's status.
 */
enum ttd_status heap_timeline_find(const struct heap_trace *trace,
                                   const struct heap_timeline_options *options,
                                   struct heap_timeline *timeline, struct ttd_error *error);
/** Returns the duration of point `index`, in nanoseconds. */
uint64_t heap_timeline_duration(const struct heap_timeline *timeline, size_t index);
void heap_timeline_free(struct heap_timeline *timeline);

#endif
