/* SPDX-License-Identifier: MIT */
/** When most bytes were live. */
#ifndef ANALYZER_HEAP_PEAK_H
#define ANALYZER_HEAP_PEAK_H

#include "heap/pass.h"

typedef struct heap_peak {
    /** The first position with the largest number of live bytes; 0:0 if there never were any. */
    ttd_position position;
    uint64_t bytes;
    uint64_t blocks;
    heap_outcome outcome;
} heap_peak;

/**
 * Goes through the whole trace.
 *
 * @param peak  set on TTD_OK; owns nothing
 * Others and statuses as heap_pass_run().
 */
ttd_status heap_peak_find(ttd_reader *reader, const heap_batch_hook *hook, heap_peak *peak,
                          ttd_error *error);

#endif
