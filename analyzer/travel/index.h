/* SPDX-License-Identifier: MIT */
/** Making the sidecar index of a trace (spec, "Derived files"). */
#ifndef ANALYZER_TRAVEL_INDEX_H
#define ANALYZER_TRAVEL_INDEX_H

#include <ttdtrace/writer.h>

#include "travel/heap_trace.h"
#include "travel/index_check.h"

/** The distances between the states in an index. */
struct heap_index_spacing {
    /** Minimum number of events between two keyframes. The distance is larger where keyframes are
     * large, so that the index takes about as many bytes as the events themselves at most, and
     * where summaries serve the positions between. 0: a keyframe between any two chunks of events
     * where no call is in flight. */
    uint64_t keyframes;
    /** Minimum number of events in the range of a summary. */
    uint64_t summaries;
    /** Minimum number of live blocks, from 1 on, for summaries to be made. Where fewer are live, a
     * keyframe is read fast enough. */
    uint64_t summary_blocks;
};

/** The spacing of `ttdanalyze index`. Fewer events than these are replayed faster than a keyframe
 * is found and read. */
#define HEAP_INDEX_SPACING                                                                         \
    ((struct heap_index_spacing){                                                                  \
        .keyframes = 131072, .summaries = UINT64_C(1) << 18, .summary_blocks = 131072})

/** Counts of an index that was made. */
struct heap_index_facts {
    uint64_t events;
    uint64_t keyframes;
    uint64_t summaries;
};

/**
 * Replays a trace and writes keyframes and summaries.
 *
 * @param trace    its keyframes are not used
 * @param spacing  such as HEAP_INDEX_SPACING
 * @param writer   of a derived trace; not closed
 * @param facts    set on TTD_OK
 * @param error    detail on failure
 * @return TTD_OK; TTD_ERROR_CORRUPT or TTD_ERROR_TRUNCATED if the trace is damaged: a replay that
 *         starts behind the damage would not notice it; TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and what
 *         the hook returns.
 */
enum ttd_status heap_index_write(const struct heap_trace *trace,
                                 const struct heap_index_spacing *spacing,
                                 struct ttd_writer *writer, struct heap_index_facts *facts,
                                 struct ttd_error *error);

/**
 * Replays a trace, and compares each state of its index with the state of the replay at the same
 * position. Takes as much memory as heap_index_write().
 *
 * @param trace   as for heap_index_write()
 * @param check   initialized; its `difference` is set if the index differs
 * @return TTD_OK if all agrees; TTD_ERROR_CORRUPT if it differs; else as heap_index_write().
 */
enum ttd_status heap_index_compare(const struct heap_trace *trace, struct heap_index_check *check,
                                   struct ttd_error *error);

#endif
