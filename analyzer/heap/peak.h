/* SPDX-License-Identifier: MIT */
/** When most bytes were live. */
#ifndef ANALYZER_HEAP_PEAK_H
#define ANALYZER_HEAP_PEAK_H

#include "heap/pass.h"

/**
 * Goes through the whole trace, or with keyframes that know the peak only through its end.
 *
 * @param peak     set on TTD_OK
 * @param outcome  of the whole trace
 * Others and statuses as heap_pass_run().
 */
ttd_status heap_peak_find(ttd_reader *reader, const heap_keyframes *keyframes,
                          const heap_batch_hook *hook, heap_peak *peak, heap_outcome *outcome,
                          ttd_error *error);

#endif
