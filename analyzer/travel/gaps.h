/* SPDX-License-Identifier: MIT */
/**
 * Gaps: ranges of positions in which a thread ran without being recorded, because it was paused,
 * throttled or in no island. The thread may have released any block that was live in the gap. Such
 * a block is *unknown* from the gap on, until an event about it is recorded.
 *
 * Calls that are never recorded, such as those of a foreign allocator, are a loss without an end
 * and not a gap: they make every finding uncertain, but no block unknown.
 */
#ifndef ANALYZER_TRAVEL_GAPS_H
#define ANALYZER_TRAVEL_GAPS_H

#include <stdbool.h>

#include <ttdtrace/reader.h>

struct heap_gap {
    struct ttd_position begin;
    /** Once the gaps are sorted: the latest end of this gap and all gaps that begin before it. */
    struct ttd_position end;
};

/** The gaps of a trace; all zero when empty. */
struct heap_gaps {
    struct heap_gap *items;
    size_t count;
    size_t capacity;
    bool is_sorted;
};

/** Adds the gaps among the losses of a batch; ignores batches of other kinds. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_gaps_add(struct heap_gaps *gaps, const struct ttd_batch *batch);

/** Reads the gaps of a trace, and leaves the reader at the end. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY, and as ttd_reader_next(). */
enum ttd_status heap_gaps_read(struct heap_gaps *gaps, struct ttd_reader *reader,
                               struct ttd_error *error);
void heap_gaps_free(struct heap_gaps *gaps);

/** Returns the latest end of all gaps that begin before a position; 0:0 if there is none. A block
 * that is live at the position and was allocated before this end is unknown. */
struct ttd_position heap_gaps_end(struct heap_gaps *gaps, struct ttd_position position);

/** Whether a block allocated at a position is unknown, where `unknown_before` is the result of
 * heap_gaps_end(). */
static inline bool heap_is_unknown(struct ttd_position allocated,
                                   struct ttd_position unknown_before)
{
    return ttd_position_compare(allocated, unknown_before) < 0;
}

#endif
