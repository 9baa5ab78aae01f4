/* SPDX-License-Identifier: MIT */
/** When most bytes were live, and whose. */
#ifndef ANALYZER_ANALYSES_STATE_PEAK_H
#define ANALYZER_ANALYSES_STATE_PEAK_H

#include "analyses/state/kept.h"
#include "travel/replay_to.h"

struct heap_peak_state_options {
    /** Splits the groups, beside the stack. */
    enum heap_split split;
};

struct heap_peak_state {
    /** The outcome of the whole trace: the peak is the peak only if all of it is known. */
    struct heap_outcome outcome;
    struct heap_peak peak;
    /** The blocks that were live then, without those that the runtimes keep. */
    struct heap_groups groups;
    struct heap_runtime runtime;
};

/**
 * Replays the whole trace, or, where an index knows the peak, only the way to it and the end. What
 * the index says of the peak is checked against the blocks that are live there.
 *
 * @param state  set on TTD_OK; release with heap_peak_state_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_peak_state_find(const struct heap_trace *trace,
                                     const struct heap_peak_state_options *options,
                                     struct heap_peak_state *state, struct ttd_error *error);
void heap_peak_state_free(struct heap_peak_state *state);

#endif
