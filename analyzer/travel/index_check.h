/* SPDX-License-Identifier: MIT */
/**
 * Comparing an index with its trace. The code that makes an index replays the trace, and hands over
 * the state, sums and list of blocks at each position where the index has them. Each is compared
 * with the next record of the index and then dropped, so memory does not grow with the index.
 */
#ifndef ANALYZER_TRAVEL_INDEX_CHECK_H
#define ANALYZER_TRAVEL_INDEX_CHECK_H

#include <ttdtrace/reader.h>

#include "heap/groups.h"

/** Iterates over the records of a reader. */
struct heap_index_records {
    struct ttd_reader *reader;
    struct ttd_batch batch;
    /** Number of records of the batch that have been compared. */
    size_t taken_count;
    bool is_over;
};

struct heap_index_check {
    /** Three iterators over the same index: keyframes and summaries; the lists and sums that belong
     * to them; the state of the peak. */
    struct heap_index_records states;
    struct heap_index_records lists;
    struct heap_index_records peaks;
    /** The first difference, with status TTD_ERROR_CORRUPT, or the failure to read the index;
     * status TTD_OK while there is neither. */
    struct ttd_error difference;
    /** Number of states compared. */
    uint64_t compared;
};

/**
 * Begins a comparison.
 *
 * @param readers  three readers of the same index, not tolerant; borrowed
 * @return TTD_OK, or the status of a failure to read the index, which is also stored as the
 *         difference.
 */
enum ttd_status heap_index_check_init(struct heap_index_check *check,
                                      struct ttd_reader *const readers[3]);

/** Returns the keyframe or summary that comes next in the index, or NULL after the last. */
const struct ttd_state *heap_index_check_next(const struct heap_index_check *check);

/**
 * Compare a state, list or set of sums of the replay with the next one of the index.
 *
 * @return TTD_OK; TTD_ERROR_CORRUPT if they differ; TTD_ERROR_NO_MEMORY, TTD_ERROR_IO. A failure to
 *         read the index is also stored as the difference.
 */
enum ttd_status heap_index_check_state(struct heap_index_check *check,
                                       const struct ttd_state *state);
enum ttd_status heap_index_check_blocks(struct heap_index_check *check,
                                        const struct ttd_live_blocks *list);
/** The order of sums in the index does not matter. */
enum ttd_status heap_index_check_sums(struct heap_index_check *check,
                                      const struct heap_tables *sums);

/** Reports that the next state of the index stands where the trace can have none, such as within a
 * chunk or while a call is in flight. Returns TTD_ERROR_CORRUPT. */
enum ttd_status heap_index_check_misplaced(struct heap_index_check *check);

/** Ends the comparison; records that are left in the index are a difference. Statuses as above. */
enum ttd_status heap_index_check_end(struct heap_index_check *check);

#endif
