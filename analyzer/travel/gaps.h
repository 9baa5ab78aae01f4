/* SPDX-License-Identifier: MIT */
/**
 * Gaps: ranges of positions in which a thread ran and was not recorded, because it was paused,
 * throttled or in no island. It may have released any block that was live then; such a block is
 * *unknown* from the gap on, until something is recorded of it.
 *
 * Calls that are never recorded, such as those of a foreign allocator, are a loss without an end,
 * and no gap: they make every finding uncertain, and no block unknown.
 */
#ifndef ANALYZER_TRAVEL_GAPS_H
#define ANALYZER_TRAVEL_GAPS_H

#include <stdbool.h>

#include <ttdtrace/reader.h>

/** A range in which calls may be missing. */
struct heap_gap {
    struct ttd_position begin;
    /** Once the gaps are sorted, the latest end of the gaps up to this one. */
    struct ttd_position end;
};

/** The gaps of a trace; all zero when empty. */
struct heap_gaps {
    struct heap_gap *items;
    size_t count;
    size_t capacity;
    bool is_sorted;
};

/** Adds the gaps among the losses of a batch of that kind. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_gaps_add(struct heap_gaps *gaps, const struct ttd_batch *batch);

/** Reads the gaps of a trace. The reader is left at the end. @return TTD_OK, TTD_ERROR_NO_MEMORY,
 * and as ttd_reader_next(). */
enum ttd_status heap_gaps_read(struct heap_gaps *gaps, struct ttd_reader *reader,
                               struct ttd_error *error);
void heap_gaps_free(struct heap_gaps *gaps);

/** Returns the latest end of the gaps that begin before a position; 0:0 if none does. Blocks that
 * are live at the position, and were allocated before that end, are unknown. */
struct ttd_position heap_gaps_end(struct heap_gaps *gaps, struct ttd_position at);

/** Whether a position is before such an end. */
static inline bool heap_is_unknown(struct ttd_position allocated,
                                   struct ttd_position unknown_before)
{
    return ttd_position_compare(allocated, unknown_before) < 0;
}

#endif
