/* SPDX-License-Identifier: MIT */
/** Spans: blocks by the tick in which each was allocated and the later one in which it was
 * released. With the states at the ticks they tell, of any range that begins and ends with a tick,
 * how many blocks were allocated and released inside or outside of it. */
#ifndef ANALYZER_ANALYSES_ACTIVITY_TICK_SPANS_H
#define ANALYZER_ANALYSES_ACTIVITY_TICK_SPANS_H

#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/status.h>

/** Blocks that were allocated in one tick and released in another, and their bytes; sums are modulo
 * 2^64. */
struct heap_tick_span {
    uint64_t blocks;
    uint64_t bytes;
};

struct heap_tick_spans {
    /** By tick of the release, and for each by tick of the allocation, which is before it: those of
     * tick 1, then those of tick 2. */
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

/** Returns the spans of the blocks that were released in a tick, by that of their allocation. */
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

#endif
