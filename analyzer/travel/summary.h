/* SPDX-License-Identifier: MIT */
/**
 * Making summaries: see heap_keyframe. Sums of all live blocks are carried from one to the next, so
 * that each takes time by what has changed, and hardly more. Another thread may write one while the
 * next is being made.
 */
#ifndef ANALYZER_TRAVEL_SUMMARY_H
#define ANALYZER_TRAVEL_SUMMARY_H

#include "travel/block_lists.h"
#include "travel/states.h"

/** No record of a block. */

/** A live block as a summary needs it, so that it does without the table of live blocks. */
struct heap_summed {
    struct ttd_position allocated;
    /** The index of its group in sums.by[HEAP_BY_STACK]. */
    uint32_t group;
    /** The records of the blocks of its group that were allocated before and after it. */
    uint32_t earlier;
    uint32_t later;
};

/** The records of the first and the last live block of a group; HEAP_NO_RECORD where none is. */
struct heap_ends {
    uint32_t first;
    uint32_t last;
};

struct heap_summary {
    /** Whether one is being made, and its beginning. */
    bool is_open;
    struct heap_keyframe begin;
    /* The members below describe the last summary that has ended. heap_summary_write() owns them
     * while it runs. */
    struct heap_keyframe done;
    /** Blocks that ended while it was made, and those acquired that did not. */
    struct heap_block_copies ended;
    struct heap_block_copies born;
    /** Sums of all blocks that were live when the summary began; once it was written, when it
     * ended. */
    struct heap_tables sums;
    /** By record; and by index of the group. */
    struct heap_summed *blocks;
    size_t block_capacity;
    struct heap_ends *ends;
    size_t end_count;
    size_t end_capacity;
};

/**
 * Starts one at the replay's position, where no call is in flight and a block is live.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_summary_begin(struct heap_summary *summary, struct heap_replay *replay);

/**
 * Ends it where no call is in flight, if there is one; not if a heap was destroyed meanwhile, or
 * sums went over the top: then it is closed. The one before has been written.
 *
 * @param end        what is replayed from here on is at this position or after
 * @param has_ended  set to whether there is one to be written, before the next ends
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_summary_end(struct heap_summary *summary, struct heap_replay *replay,
                                 struct ttd_position end, bool *has_ended);

/** Writes the one that has ended. @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO. */
enum ttd_status heap_summary_write(struct heap_summary *summary, struct heap_block_lister *lister);

/** Releases everything. No heap_summary_write() may be running. */
void heap_summary_close(struct heap_summary *summary);

#endif
