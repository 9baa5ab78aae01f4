/* SPDX-License-Identifier: MIT */
/**
 * Making the summaries of an index; struct heap_keyframe says what a summary is. A trace is
 * replayed once, and its summaries follow each other: heap_summary_begin(), the replay of a range
 * of events, whose changes it observes, heap_summary_end(), heap_summary_write(). The sums of all
 * live blocks are carried from one summary to the next, so the time that a summary takes is
 * proportional to the changes in its range, not to the live blocks. Another thread may write a
 * summary while the next one is being made.
 */
#ifndef ANALYZER_TRAVEL_SUMMARY_H
#define ANALYZER_TRAVEL_SUMMARY_H

#include <ttdtrace/writer.h>

#include "heap/heap_live.h"
#include "travel/index_check.h"
#include "travel/keyframes.h"

/* Writing the records of an index: states, and lists of live blocks. */

/** Destination of the records of an index: a writer, or the comparison with an existing index. */
struct heap_block_lister {
    /** NULL with a check. */
    struct ttd_writer *writer;
    /** Compares each record instead of writing it; NULL to write. */
    struct heap_index_check *check;
    /** Number of lists written. */
    uint32_t count;
};

/**
 * Writes a state.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO; with a check, this function and the next two
 *         return what heap_index_check_state() does.
 */
enum ttd_status heap_list_state(struct heap_block_lister *lister, const struct ttd_state *state);

/** Writes a list of all live blocks. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO. */
enum ttd_status heap_list_live(struct heap_block_lister *lister, struct ttd_position position,
                               const struct heap_live *live);

/** Writes a list of `count` blocks, no two of which have the same address. Statuses as
 * heap_list_live(). */
enum ttd_status heap_list_blocks(struct heap_block_lister *lister, struct ttd_position position,
                                 const struct heap_block *blocks, size_t count);

/** A live block, reduced to what the sums need. The thread that writes a summary uses these, since
 * the replay changes the table of live blocks at the same time. */
struct heap_summed {
    struct ttd_position allocated;
    /** Index of the block's group in sums.by[HEAP_BY_STACK]. */
    uint32_t group;
    /** Records of the blocks of the same group that were allocated just before and just after this
     * one: a list in order of allocation, from which a block is removed in constant time. */
    uint32_t earlier;
    uint32_t later;
};

/** Records of the first and the last live block of a group; HEAP_NO_RECORD if it has none. */
struct heap_ends {
    uint32_t first;
    uint32_t last;
};

/** A block that was acquired. It is live as long as its record in the table of live blocks has it,
 * and is live. */
struct heap_born {
    uint64_t event;
    uint32_t record;
};

struct heap_summary {
    /** A summary is being made; `begin` is the state at which it began. */
    bool is_open;
    struct heap_keyframe begin;
    /** Changes since it began, from the replay: blocks acquired before and ended since; and all
     * blocks acquired since. */
    struct heap_block_copies ending;
    struct heap_born *acquired;
    size_t acquired_count;
    size_t acquired_capacity;
    /* The members below describe the last summary that has ended. While heap_summary_write() runs
     * they belong to its thread. */
    struct heap_keyframe last_range;
    /** Blocks released in the range of the summary; and blocks acquired in it that were still live
     * at its end. */
    struct heap_block_copies ended;
    struct heap_block_copies born;
    /** Sums of all blocks that were live when the summary began. After heap_summary_write(): of
     * those that were live when it ended, which is where the next summary began. */
    struct heap_tables sums;
    /** Live blocks, by record. */
    struct heap_summed *blocks;
    size_t block_capacity;
    /** Ends of the groups in sums.by[HEAP_BY_STACK], by index of the group. */
    struct heap_ends *ends;
    size_t end_count;
    size_t end_capacity;
};

/**
 * Begins a summary at the position of the replay, and observes its blocks: `summary` must stay
 * where it is until it is closed. No call may be in flight there, and at least one block must be
 * live.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_summary_begin(struct heap_summary *summary, struct heap_replay *replay);

/**
 * Ends the open summary at the position of the replay. No call may be in flight there, and the
 * summary before must have been written. A summary is discarded, and `summary` closed, if a heap
 * was destroyed in its range, since the blocks of such a heap end without events of their own, or
 * if a sum has saturated.
 *
 * @param end        everything that is replayed later has effect at this position or after
 * @param has_ended  set to true if there is a summary for heap_summary_write(), which must run
 *                   before the next summary ends; false if none was open or it was discarded
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_summary_end(struct heap_summary *summary, struct heap_replay *replay,
                                 struct ttd_position end, bool *has_ended);

/** Writes the summary that has ended, and brings the sums up to its end. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY, TTD_ERROR_IO. */
enum ttd_status heap_summary_write(struct heap_summary *summary, struct heap_block_lister *lister);

/** Releases everything, and stops observing the replay. No heap_summary_write() may be running. */
void heap_summary_close(struct heap_summary *summary, struct heap_replay *replay);

#endif
