/* SPDX-License-Identifier: MIT */
/** One pass over a trace up to a position, with what is missing on the way. */
#ifndef ANALYZER_TRAVEL_PASS_H
#define ANALYZER_TRAVEL_PASS_H

#include "travel/cursor.h"
#include "travel/losses.h"

struct heap_pass {
    /** Afterwards cursor.replay is the state at the position asked for. */
    struct heap_cursor cursor;
    struct heap_losses losses;
    /** The position asked for is not before the last one of the trace. */
    bool reached_end;
    const struct heap_batch_hook *hook;
    /** Loss records were read beforehand; only those that the reader makes up are news. */
    bool has_losses;
};

/**
 * Replays everything up to and including `at`.
 *
 * @param reader    tolerant; used, but not owned
 * @param keyframes as for heap_cursor_init(); NULL with an observer
 * @param observer  NULL for none; its context may use `pass`
 * @param hook      sees every batch read; NULL for none
 * @param pass      release with heap_pass_free(), also on failure
 * @param error     detail on failure
 * @return as heap_cursor_seek().
 */
enum ttd_status heap_pass_run(struct heap_pass *pass, struct ttd_reader *reader,
                              const struct heap_keyframes *keyframes, struct ttd_position at,
                              const struct heap_observer *observer,
                              const struct heap_batch_hook *hook, struct ttd_error *error);

/**
 * The same, for an observer that needs to be told only of effects at `from` or after: of those
 * before it is told of some or all. Its blocks from a keyframe have a `user` of 0.
 */
enum ttd_status heap_pass_run_range(struct heap_pass *pass, struct ttd_reader *reader,
                                    const struct heap_keyframes *keyframes,
                                    struct ttd_position from, struct ttd_position at,
                                    const struct heap_observer *observer,
                                    const struct heap_batch_hook *hook, struct ttd_error *error);

/**
 * As heap_pass_run(), for a caller that wants only sums: live blocks may be added to `sums` that
 * are not among those of the cursor. NULL if that is no good.
 */
enum ttd_status heap_pass_run_sums(struct heap_pass *pass, struct ttd_reader *reader,
                                   const struct heap_keyframes *keyframes, struct ttd_position at,
                                   struct heap_tables *sums, const struct heap_batch_hook *hook,
                                   struct ttd_error *error);

/** As heap_pass_run(), to the end, and cursor.replay keeps the peak: see heap_replay_keep_peak().
 */
enum ttd_status heap_pass_run_peak(struct heap_pass *pass, struct ttd_reader *reader,
                                   const struct heap_batch_hook *hook, struct ttd_error *error);
void heap_pass_free(struct heap_pass *pass);

/** What is left of a pass when it is over. */
struct heap_outcome {
    struct heap_losses losses;
    struct heap_counts counts;
    /** The nearest position at or before the one asked for, at which something happened. */
    struct ttd_position position;
    /** Reallocations in flight there, whose blocks are neither live nor released. */
    uint64_t in_flight;
    bool reached_end;
    /** The trace ends within a chunk, as `error` says. */
    bool truncated;
    struct ttd_error error;
};

/** What it has come to where it is. */
struct heap_outcome heap_pass_outcome(const struct heap_pass *pass);

/** Sets `outcome`, and releases the pass. */
void heap_pass_end(struct heap_pass *pass, struct heap_outcome *outcome);

/** The position of the last effect at or before the one asked for. */
static inline struct ttd_position heap_pass_position(const struct heap_pass *pass)
{
    return pass->cursor.replay.position;
}

#endif
