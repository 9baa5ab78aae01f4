/* SPDX-License-Identifier: MIT */
/** Replaying a trace up to a position, with what is missing on the way. */
#ifndef ANALYZER_TRAVEL_REPLAY_TO_H
#define ANALYZER_TRAVEL_REPLAY_TO_H

#include "travel/cursor.h"
#include "travel/gaps.h"
#include "travel/losses.h"

/** A route: the position that a replay goes to, and its duties on the way. */
struct heap_route {
    /** Every effect at this position or before is applied. */
    struct ttd_position to;
    /** NULL for none, which is faster; copied. Its context may use the arrival. */
    const struct heap_observer *observer;
    /**
     * The observer needs to be told only of effects at this position or after, of all of which it
     * is told: keyframes may be used to get here. It is told of some, all or none before. 0:0 for
     * everything, which takes a replay from the beginning.
     */
    struct ttd_position from;
    /** For a caller that wants only sums: live blocks may be added here that are not among those
     * of the cursor. NULL if the cursor shall have all. */
    struct heap_tables *sums;
    /** The replay keeps the peak, and starts at the beginning: see heap_replay_keep_peak(). */
    bool keeps_peak;
};

/** The state in which a replay has arrived. */
struct heap_arrival {
    /** cursor.replay is the state at the position. */
    struct heap_cursor cursor;
    struct heap_losses losses;
    struct heap_gaps gaps;
    /** The position is not before the last one of the trace. */
    bool reached_end;
    struct heap_batch_hook hook;
    /** Recorded losses were read beforehand; only those that the reader makes up are news. */
    bool has_losses;
};

/**
 * Replays a trace.
 *
 * @param arrival  release with heap_arrival_free(), also on failure; stays where it is meanwhile
 * @param error    detail on failure
 * @return as heap_cursor_seek().
 */
enum ttd_status heap_replay_to(struct heap_arrival *arrival, const struct heap_trace *trace,
                               const struct heap_route *route, struct ttd_error *error);

/** Goes on to a later position without keyframes: the observer is told of all effects between.
 * Statuses as heap_replay_to(). */
enum ttd_status heap_replay_on(struct heap_arrival *arrival, struct ttd_position to,
                               struct ttd_error *error);

void heap_arrival_free(struct heap_arrival *arrival);

/** The facts from which the certainty of an answer is judged: the first member of every result of
 * a query. */
struct heap_outcome {
    struct heap_losses losses;
    struct heap_counts counts;
    /** The nearest position at or before the one asked for, at which something happened. */
    struct ttd_position position;
    /** Blocks live there, and allocated before this, are unknown: see heap_gaps_end(). */
    struct ttd_position unknown_before;
    /** Reallocations in flight there, whose blocks are neither live nor released. */
    uint64_t in_flight;
    bool reached_end;
    /** The trace ends within a chunk, or was not read to its end, as `error` says. */
    bool truncated;
    struct ttd_error error;
    /** The index was given up: a block that it lists is not as the trace says. */
    bool has_refuted_index;
};

struct heap_outcome heap_arrival_outcome(struct heap_arrival *arrival);

/** Sets `outcome`, and releases the arrival. */
void heap_arrival_end(struct heap_arrival *arrival, struct heap_outcome *outcome);

#endif
