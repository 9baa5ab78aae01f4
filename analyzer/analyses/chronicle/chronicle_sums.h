/* SPDX-License-Identifier: MIT */
/** The blocks between two moments in four quadrants, as analyses/state/diff.h has them. */
#ifndef ANALYZER_ANALYSES_CHRONICLE_CHRONICLE_SUMS_H
#define ANALYZER_ANALYSES_CHRONICLE_CHRONICLE_SUMS_H

#include "analyses/activity/ticks.h"
#include "analyses/chronicle/chronicle.h"
#include "analyses/state/diff.h"

/* Sums of the changes between two moments, as ticks have them. */

/** Changes of the heap after one moment, up to and including another. */
struct chronicle_sums {
    /** The state at the second moment. */
    struct heap_tick tick;
    /** Changes, each series with one tick. */
    struct heap_tick_series series[HEAP_TICK_KEYS];
};

/** Two moments, the second not before the first. */
struct chronicle_range {
    uint32_t from;
    uint32_t to;
};

/** Says for a stack whether its blocks count. */
struct chronicle_filter {
    const void *context;
    /** NULL if all count. */
    bool (*wants)(const void *context, ttd_id stack);
};

/**
 * @param before  the tick at moment `range.from`: its live blocks and its event go on
 * @param sums    release with chronicle_sums_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status chronicle_sum(const struct chronicle *chronicle, struct chronicle_range range,
                              const struct heap_tick *before, struct chronicle_filter filter,
                              struct chronicle_sums *sums);
void chronicle_sums_free(struct chronicle_sums *sums);

/** By quadrant the sums of its blocks by stack, as the changes of one tick. */
struct chronicle_quadrants {
    struct heap_tick_series series[HEAP_QUADRANTS];
};

/**
 * Finds what was live at the first moment or acquired since, and whether it had ended by the second
 * one. Blocks that the runtimes keep are not distinguished.
 *
 * @param quadrants  release with chronicle_quadrants_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status chronicle_quadrants_find(const struct chronicle *chronicle,
                                         struct chronicle_range range,
                                         struct chronicle_filter filter,
                                         struct chronicle_quadrants *quadrants);
void chronicle_quadrants_free(struct chronicle_quadrants *quadrants);

#endif
