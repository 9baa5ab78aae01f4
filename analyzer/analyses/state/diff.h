/* SPDX-License-Identifier: MIT */
/** The blocks of a range of positions in four quadrants: by whether each was allocated inside or
 * outside the range, and freed inside or outside it. */
#ifndef ANALYZER_ANALYSES_STATE_DIFF_H
#define ANALYZER_ANALYSES_STATE_DIFF_H

#include "analyses/state/kept.h"
#include "travel/islands.h"
#include "travel/replay_to.h"

/** Allocated Inside or Outside the range, Freed Inside or Outside it. */
enum heap_quadrant { HEAP_AIFI, HEAP_AIFO, HEAP_AOFI, HEAP_AOFO };

#define HEAP_QUADRANTS 4

struct heap_diff_options {
    /** The first position of the range, and the last one. */
    struct ttd_position from;
    struct ttd_position last;
    /** Only blocks that were allocated in islands that these want; NULL for all. */
    const struct heap_islands *islands;
    /** Splits the quadrants, beside the stack. */
    enum heap_split split;
    /** For HEAP_SPLIT_CLASS; else NULL. */
    const struct heap_block_classes *classes;
};

struct heap_diff {
    struct heap_outcome outcome;
    /** Groups by the stack that allocated, with their nested blocks. A block that was live at no
     * position of the range is in no quadrant, so outside means before the range for an allocation,
     * after it for a release. */
    struct heap_groups quadrants[HEAP_QUADRANTS];
    /** Those blocks not freed in the range that are unknown: see heap_gaps_end(). Not sorted. */
    struct heap_groups unknown;
    /** Blocks of the runtimes that are live at the end of the range; they are in no quadrant. */
    struct heap_runtime runtime;
};

/**
 * @param diff  set on TTD_OK; release with heap_diff_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_diff_find(const struct heap_trace *trace,
                               const struct heap_diff_options *options, struct heap_diff *diff,
                               struct ttd_error *error);
void heap_diff_free(struct heap_diff *diff);

/** Returns the static name of a quadrant, such as "aifi". */
const char *heap_quadrant_name(enum heap_quadrant quadrant);

#endif
