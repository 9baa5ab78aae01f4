/* SPDX-License-Identifier: MIT */
/** When most bytes were live, and whose. */
#ifndef ANALYZER_ANALYSES_PEAK_H
#define ANALYZER_ANALYSES_PEAK_H

#include "analyses/kept.h"
#include "travel/pass.h"

struct heap_peak_state {
    struct heap_peak peak;
    /** The blocks that were live then, without those that the runtimes keep. */
    struct heap_groups groups;
    struct heap_runtime runtime;
    /** Of the whole trace. */
    struct heap_outcome outcome;
};

/**
 * Goes through the whole trace, or with keyframes that know the peak only there and through its
 * end. What an index says of the peak is checked.
 *
 * @param split  what groups are told apart by, beside the stack
 * @param found    set on TTD_OK; release with heap_peak_state_free()
 * Others and statuses as heap_pass_run().
 */
enum ttd_status heap_peak_find(struct ttd_reader *reader, const struct heap_keyframes *keyframes,
                               enum heap_split split, const struct heap_batch_hook *hook,
                               struct heap_peak_state *state, struct ttd_error *error);
void heap_peak_state_free(struct heap_peak_state *state);

#endif
