/* SPDX-License-Identifier: MIT */
/** Making the sidecar index of a trace (spec, "Derived files"). */
#ifndef ANALYZER_TRAVEL_INDEX_H
#define ANALYZER_TRAVEL_INDEX_H

#include <ttdtrace/writer.h>

#include "travel/trace.h"
#include "travel/index_check.h"

/** The distances between the states in an index. */
struct heap_index_spacing {
    /** At least so many events from one keyframe to the next; 0 for a keyframe wherever there can
     * be one, else not more than that the index is about as large as the events; fewer where there
     * are summaries. */
    uint64_t keyframes;
    /** At least so many events in a summary, and so many live blocks, 1 or more, at its beginning:
     * fewer are read fast enough. */
    uint64_t summaries;
    uint64_t summary_blocks;
};

/** Fewer events than these are replayed faster than a keyframe is found and read. */
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
 * @return TTD_OK, TTD_ERROR_CORRUPT or TTD_ERROR_TRUNCATED (a damaged trace has no index: what is
 *         missing would not be seen any more), TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and what the
 *         hook returns.
 */
enum ttd_status heap_index_write(const struct heap_trace *trace,
                                 const struct heap_index_spacing *spacing,
                                 struct ttd_writer *writer, struct heap_index_facts *facts,
                                 struct ttd_error *error);

/**
 * Replays a trace, and compares each state of its index with what the trace gives there. Memory is
 * as for making the index.
 *
 * @param trace   as for heap_index_write()
 * @param check   begun; its `difference` is set if the index differs
 * @return TTD_OK if all agrees; TTD_ERROR_CORRUPT if it differs; else as heap_index_write().
 */
enum ttd_status heap_index_compare(const struct heap_trace *trace, struct heap_index_check *check,
                                   struct ttd_error *error);

#endif
