/* SPDX-License-Identifier: MIT */
/** Generates pseudorandom calls of two threads that allocate, move and release blocks. */
#ifndef SUPPORT_CHURN_H
#define SUPPORT_CHURN_H

#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/ttdtrace.h>

struct churn {
    /** State of the random numbers; the seed at first. */
    uint64_t random;
    /** Position of the latest call. */
    struct ttd_position now;
    /** Number of addresses at which blocks can be. */
    size_t slots;
    /** By slot: the sequence from which on its block can be released; 0 without a block. */
    uint64_t *release_from;
};

/** The next call, of thread 1 or 2 in heap 1 or 2, with one of the stacks 0 to 4. */
struct ttd_event churn_next(struct churn *churn);

#endif
