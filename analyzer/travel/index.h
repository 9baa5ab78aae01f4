/* SPDX-License-Identifier: MIT */
/** Making the sidecar index of a trace (spec, "Derived files"). */
#ifndef ANALYZER_TRAVEL_INDEX_H
#define ANALYZER_TRAVEL_INDEX_H

#include <ttdtrace/reader.h>
#include <ttdtrace/writer.h>

#include "heap/groups.h"
#include "heap/heap_live.h"
#include "travel/heap_trace.h"
#include "travel/keyframes.h"

/*
 * Comparing an index with its trace. The code that makes an index replays the trace, and hands over
 * the state, sums and list of blocks at each position where the index has them. Each is compared
 * with the next record of the index and then dropped, so memory does not grow with the index.
 */

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
 * @return TTD_OK, or the status of a failure to read the index, stored as the difference too.
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

/*
 * Making the summaries of an index; struct heap_keyframe says what a summary is. A trace is
 * replayed once, and its summaries follow each other: heap_summary_begin(), the replay of a range
 * of events, whose changes it observes, heap_summary_end(), heap_summary_write(). The sums of all
 * live blocks are carried from one summary to the next, so the time that a summary takes is
 * proportional to the changes in its range, not to the live blocks. Another thread may write a
 * summary while the next one is being made.
 */

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

/** Writes a list of `count` blocks with different addresses. Statuses as heap_list_live(). */
enum ttd_status heap_list_blocks(struct heap_block_lister *lister, struct ttd_position position,
                                 const struct heap_block *blocks, size_t count);

/** A live block, reduced to what the sums need. The thread that writes a summary uses these, since
 * the replay changes the table of live blocks at the same time. */
struct heap_summed {
    struct ttd_position allocated;
    /** Index of the block's group in sums.by[HEAP_BY_STACK]. */
    uint32_t group;
    /** Records of the blocks of the same group that were allocated just before and just after this
     * one: a list in order of allocation; a block is removed in constant time. */
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
    /** A summary is being made; `begin` is the state where it began. */
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
     * those that were live when it ended and the next summary began. */
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
 * @param has_ended  set to true if there is a summary for heap_summary_write(); this must run
 * before the next summary ends; false if none was open or it was discarded
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_summary_end(struct heap_summary *summary, struct heap_replay *replay,
                                 struct ttd_position end, bool *has_ended);

/** Writes the summary that has ended, and brings the sums up to its end. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY, TTD_ERROR_IO. */
enum ttd_status heap_summary_write(struct heap_summary *summary, struct heap_block_lister *lister);

/** Releases everything, and stops observing the replay. No heap_summary_write() may be running. */
void heap_summary_close(struct heap_summary *summary, struct heap_replay *replay);

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
 *         starts behind the damage would not notice it; TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, or the
 * hook's status.
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
