/* SPDX-License-Identifier: MIT */
/**
 * Comparing an index with what its trace gives. The code that makes an index replays the trace, and
 * hands over each state, sum and list of blocks at the positions where the index has one. Each is
 * compared with the record of the index that is next, and kept no longer than that.
 */
#ifndef ANALYZER_TRAVEL_INDEX_CHECK_H
#define ANALYZER_TRAVEL_INDEX_CHECK_H

#include <ttdtrace/reader.h>

#include "heap/tables.h"

/** Records of one reader, one after the other. */
struct heap_index_records {
    struct ttd_reader *reader;
    struct ttd_batch batch;
    /** Number of records of the batch that were taken. */
    size_t taken;
    bool is_over;
};

struct heap_index_check {
    /** Keyframes and summaries; the lists and sums that belong to them; states of the peak. */
    struct heap_index_records states;
    struct heap_index_records lists;
    struct heap_index_records peaks;
    /** The first difference, its status TTD_ERROR_CORRUPT; or why the index cannot be read. Else
     * its status is TTD_OK. */
    struct ttd_error difference;
    /** Counts of the states compared. */
    uint64_t compared;
};

/**
 * Begins a comparison. All three readers are of the same index, and not tolerant.
 *
 * @param readers  used, but not owned
 * @return TTD_OK, or why the index cannot be read, which is the difference as well.
 */
enum ttd_status heap_index_check_init(struct heap_index_check *check,
                                      struct ttd_reader *const readers[3]);

/** Returns the keyframe or summary that comes next in the index, or NULL after the last. */
const struct ttd_state *heap_index_check_next(const struct heap_index_check *check);

/**
 * Compare what the trace gives with what comes next in the index.
 *
 * @return TTD_OK; TTD_ERROR_CORRUPT if it differs; TTD_ERROR_NO_MEMORY, TTD_ERROR_IO. A failure to
 *         read the index is the difference as well.
 */
enum ttd_status heap_index_check_state(struct heap_index_check *check,
                                       const struct ttd_state *state);
enum ttd_status heap_index_check_blocks(struct heap_index_check *check,
                                        const struct ttd_live_blocks *list);
/** Sums may be in any order. */
enum ttd_status heap_index_check_sums(struct heap_index_check *check,
                                      const struct heap_tables *sums);

/** Reports that the next state of the index is at no position where the trace has one. Returns
 * TTD_ERROR_CORRUPT. */
enum ttd_status heap_index_check_misplaced(struct heap_index_check *check);

/** Ends the comparison: nothing may be left in the index. Statuses as above. */
enum ttd_status heap_index_check_end(struct heap_index_check *check);

#endif
