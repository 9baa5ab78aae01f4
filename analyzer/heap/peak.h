/* SPDX-License-Identifier: MIT */
/** When most bytes were live, and whose. */
#ifndef ANALYZER_HEAP_PEAK_H
#define ANALYZER_HEAP_PEAK_H

#include "heap/kept.h"
#include "heap/pass.h"

typedef struct heap_peak_state {
    heap_peak peak;
    /** The blocks that were live then, without those that the runtimes keep. */
    heap_groups groups;
    heap_runtime runtime;
    /** Of the whole trace. */
    heap_outcome outcome;
} heap_peak_state;

/**
 * Goes through the whole trace, or with keyframes that know the peak only there and through its
 * end. What an index says of the peak is checked.
 *
 * @param split  what groups are told apart by, beside the stack
 * @param found    set on TTD_OK; release with heap_peak_state_free()
 * Others and statuses as heap_pass_run().
 */
ttd_status heap_peak_find(ttd_reader *reader, const heap_keyframes *keyframes, heap_split split,
                          const heap_batch_hook *hook, heap_peak_state *found, ttd_error *error);
void heap_peak_state_free(heap_peak_state *found);

#endif
