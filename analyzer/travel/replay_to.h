/* SPDX-License-Identifier: MIT */
/** Replaying a trace up to a position, and keeping account of losses on the way. */
#ifndef ANALYZER_TRAVEL_REPLAY_TO_H
#define ANALYZER_TRAVEL_REPLAY_TO_H

#include "travel/forward.h"
#include "travel/heap_cursor.h"
#include "travel/heap_trace.h"
#include "travel/losses.h"

/** A route: the position that a replay goes to, and its duties on the way. */
struct heap_route {
    /** The replay applies every effect at this position or before. */
    struct ttd_position to;
    /** Copied; NULL for none (faster). Its context may use the arrival. */
    const struct heap_observer *observer;
    /**
     * The observer must get every effect at this position or after. Effects before it may be
     * left out, so the replay may start from a keyframe there. 0:0: the observer must get
     * everything, so the replay starts at the start of the trace.
     */
    struct ttd_position from;
    /** Allows summaries, for a caller that needs only totals: see heap_cursor.sums. NULL: the
     * cursor has all live blocks. */
    struct heap_tables *sums;
    /** The replay keeps the peak, so it starts at the start of the trace: see
     * heap_replay_keep_peak(). */
    bool keeps_peak;
    /** Only the live blocks, the counts and the position are wanted: most of the way then needs no
     * replay. See heap_end_blocks_find(). */
    bool wants_blocks_only;
    /** All calls are wanted, but not one by one: see heap_forward_replay(). `to` is the end, and
     * the observer gets the calls that are not summed up. NULL if all calls are wanted. */
    const struct heap_forward *forward;
    /** Kinds of chunks that the hook of the trace sees beside the replay's. */
    uint32_t kinds;
};

/** The result of a replay: the state at the end of its route, and the losses on the way. */
struct heap_arrival {
    /** cursor.replay is the state at the position. */
    struct heap_cursor cursor;
    struct heap_losses losses;
    struct heap_gaps gaps;
    /** The position is at or behind the last one of the trace. */
    bool reached_end;
    struct heap_batch_hook hook;
    /** Recorded losses have been read before the replay. On its way only those are added that the
     * reader makes up where it meets damage. */
    bool has_losses;
};

/**
 * Replays a trace.
 *
 * @param arrival  release with heap_arrival_free(), also on failure; must not be moved before
 * @param error    detail on failure
 * @return as heap_cursor_seek().
 */
enum ttd_status heap_replay_to(struct heap_arrival *arrival, const struct heap_trace *trace,
                               const struct heap_route *route, struct ttd_error *error);

/** Goes on to a later position without using keyframes, so the observer gets all effects
 * between. Statuses as heap_replay_to(). */
enum ttd_status heap_replay_on(struct heap_arrival *arrival, struct ttd_position position,
                               struct ttd_error *error);

void heap_arrival_free(struct heap_arrival *arrival);

/** The facts behind the certainty of an answer: the first member of every result of a query. */
struct heap_outcome {
    struct heap_losses losses;
    struct heap_counts counts;
    /** See heap_replay.left. */
    struct heap_left left;
    /** The position of the last effect at or before the position asked for. */
    struct ttd_position position;
    /** Blocks that are live at the position and were allocated before `unknown_before` are unknown:
     * see heap_gaps_end(). */
    struct ttd_position unknown_before;
    /** The answer rests on the blocks that are live at this position, and on later calls only; 0:0
     * if it rests on all calls. */
    struct ttd_position since;
    /** Number of reallocations in flight at the position: their blocks are neither live nor
     * released. */
    uint64_t in_flight;
    bool reached_end;
    /** The trace ends within a chunk or could not be read to its end; `error` has the detail. */
    bool truncated;
    struct ttd_error error;
    /** The index was given up, because a block that it lists contradicts the trace. */
    bool has_refuted_index;
};

/** Collects the outcome of a replay. */
struct heap_outcome heap_arrival_outcome(struct heap_arrival *arrival);

/** Moves the outcome out of an arrival into `outcome`, and releases the arrival. */
void heap_arrival_end(struct heap_arrival *arrival, struct heap_outcome *outcome);

#endif
