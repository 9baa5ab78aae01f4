/* SPDX-License-Identifier: MIT */
/** Sums of what happens between two moments, as ticks have them. */
#ifndef ANALYZER_ANALYSES_CHRONICLE_SUMS_H
#define ANALYZER_ANALYSES_CHRONICLE_SUMS_H

#include "analyses/activity/ticks.h"
#include "analyses/chronicle/chronicle.h"

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

#endif
