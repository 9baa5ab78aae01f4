/* SPDX-License-Identifier: MIT */
/** One pass over a trace up to a position, with what is missing on the way. */
#ifndef ANALYZER_HEAP_PASS_H
#define ANALYZER_HEAP_PASS_H

#include "heap/cursor.h"
#include "heap/losses.h"

typedef struct heap_pass {
    /** Afterwards cursor.replay is the state at the position asked for. */
    heap_cursor cursor;
    heap_losses losses;
    /** The position asked for is not before the last one of the trace. */
    bool reached_end;
    const heap_batch_hook *hook;
    /** Loss records were read beforehand; only those that the reader makes up are news. */
    bool has_losses;
} heap_pass;

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
ttd_status heap_pass_run(heap_pass *pass, ttd_reader *reader, const heap_keyframes *keyframes,
                         ttd_position at, const heap_observer *observer,
                         const heap_batch_hook *hook, ttd_error *error);

/**
 * The same, for an observer that needs to be told only of effects at `from` or after: of those
 * before it is told of some or all. Its blocks from a keyframe have a `user` of 0.
 */
ttd_status heap_pass_run_range(heap_pass *pass, ttd_reader *reader, const heap_keyframes *keyframes,
                               ttd_position from, ttd_position at, const heap_observer *observer,
                               const heap_batch_hook *hook, ttd_error *error);

/**
 * As heap_pass_run(), for a caller that wants only sums: live blocks may be added to `sums` that
 * are not among those of the cursor. NULL if that is no good.
 */
ttd_status heap_pass_run_sums(heap_pass *pass, ttd_reader *reader, const heap_keyframes *keyframes,
                              ttd_position at, heap_tables *sums, const heap_batch_hook *hook,
                              ttd_error *error);

/** As heap_pass_run(), to the end, and cursor.replay keeps the peak: see heap_replay_keep_peak().
 */
ttd_status heap_pass_run_peak(heap_pass *pass, ttd_reader *reader, const heap_batch_hook *hook,
                              ttd_error *error);
void heap_pass_free(heap_pass *pass);

/** What is left of a pass when it is over. */
typedef struct heap_outcome {
    heap_losses losses;
    heap_counts counts;
    /** The nearest position at or before the one asked for, at which something happened. */
    ttd_position position;
    /** Reallocations in flight there, whose blocks are neither live nor released. */
    uint64_t in_flight;
    bool reached_end;
    /** The trace ends within a chunk, as `error` says. */
    bool truncated;
    ttd_error error;
} heap_outcome;

/** What it has come to where it is. */
heap_outcome heap_pass_outcome(const heap_pass *pass);

/** Sets `outcome`, and releases the pass. */
void heap_pass_end(heap_pass *pass, heap_outcome *outcome);

/** The position of the last effect at or before the one asked for. */
static inline ttd_position heap_pass_position(const heap_pass *pass)
{
    return pass->cursor.replay.position;
}

#endif
