/* SPDX-License-Identifier: MIT */
/** The choice of blocks that a trace has, if the recorder was to record not all of them. */
#ifndef ANALYZER_HEAP_CHOICE_H
#define ANALYZER_HEAP_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

struct heap_choice {
    /** Not all live blocks are recorded. */
    bool is_made;
    /** All blocks that are live at a snapshot or at the end are there, and no others. */
    bool is_live_only;
    /** Mean number of bytes from one recorded block to the next; 0 if the blocks are no sample. */
    uint64_t sample;
    /** Size of the smallest recorded blocks, if they are no sample. */
    uint64_t least;
};

/** An estimate, by the blocks of a sample. */
struct heap_estimate {
    double blocks;
    double bytes;
};

static inline void heap_estimate_add(struct heap_estimate *sum, struct heap_estimate estimate)
{
    sum->blocks += estimate.blocks;
    sum->bytes += estimate.bytes;
}

#endif
