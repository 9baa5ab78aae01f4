/* SPDX-License-Identifier: MIT */
/** Helpers of the programs that generate traces. PROGRAM, the name for messages, is defined before.
 */
#ifndef BENCH_GENERATOR_H
#define BENCH_GENERATOR_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/** Ends the program with a message unless a condition holds. */
static inline void require(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, PROGRAM ": %s\n", what);
    exit(1);
}

/** Draws a number below `count`; the seed is not 0. */
static inline uint64_t draw(uint64_t *random, uint64_t count)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random % count;
}

#endif
