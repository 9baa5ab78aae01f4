/* SPDX-License-Identifier: MIT */
/** The peak: the position where most bytes were live, and the blocks live there. */
#ifndef ANALYZER_ANALYSES_STATE_PEAK_H
#define ANALYZER_ANALYSES_STATE_PEAK_H

#include "analyses/state/state.h"
#include "travel/islands.h"
#include "travel/pass.h"

struct heap_peak_state_options {
    /** Splits the groups, beside the stack. */
    enum heap_split split;
    /** Lists only blocks that were allocated in these islands; NULL for all. The peak is always the
     * peak of all blocks. */
    const struct heap_islands *islands;
};

struct peak_finder;

struct heap_peak_state {
    /** The outcome of the whole trace, since there may be a higher peak in any part that is
     * missing. */
    struct heap_outcome outcome;
    struct heap_peak peak;
    /** The blocks live at the peak, without those that the runtimes keep. */
    struct heap_groups groups;
    struct heap_runtime runtime;
    /** Until heap_peak_state_end(). */
    struct peak_finder *finder;
};

/**
 * Finds the peak. Replays the whole trace; or, if an index records the peak, only goes to it and to
 * the end. The totals that the index records are compared with the blocks live there.
 *
 * @param peak_state  set on TTD_OK; release with heap_peak_state_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_peak_state_find(const struct heap_trace *trace,
                                     const struct heap_peak_state_options *options,
                                     struct heap_peak_state *peak_state, struct ttd_error *error);
void heap_peak_state_free(struct heap_peak_state *peak_state);

/**
 * Finds the peak during a pass to the end of the trace. Added before any watcher that drops the
 * index of live blocks.
 *
 * @param trace       its hook has the judge of stacks; read before the pass
 * @param peak_state  release with heap_peak_state_free(), also on failure; stays where it is
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_peak_state_watch(struct heap_peak_state *peak_state,
                                      const struct heap_peak_state_options *options,
                                      const struct heap_trace *trace, struct heap_pass *pass,
                                      struct ttd_error *error);

/** Completes it when the pass has ended. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_peak_state_end(struct heap_peak_state *peak_state);

#endif
