/* SPDX-License-Identifier: MIT */
/** The blocks of a range of positions in four quadrants: by whether each was allocated inside or
 * outside the range, and freed inside or outside it. A comparison of two traces. */
#ifndef ANALYZER_ANALYSES_STATE_DIFF_H
#define ANALYZER_ANALYSES_STATE_DIFF_H

#include "analyses/state/state.h"
#include "heap/groups.h"
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

/* Comparison of two states of a heap: the groups of blocks that have grown or shrunk. */

enum heap_side { HEAP_OLD, HEAP_NEW };

#define HEAP_SIDES 2

/** Kinds of changes of a group, by bytes, or by number of blocks if the bytes are the same. */
enum heap_change_kind {
    HEAP_CHANGE_ADDED,
    HEAP_CHANGE_GONE,
    HEAP_CHANGE_GROWN,
    HEAP_CHANGE_SHRUNK,
    HEAP_CHANGE_SAME
};

#define HEAP_CHANGE_KINDS 5

/** The blocks of one key in both states. */
struct heap_change {
    uint64_t blocks[HEAP_SIDES];
    uint64_t bytes[HEAP_SIDES];
    /** By side: the key of the first group that was added; undefined on a side without blocks. */
    struct heap_key keys[HEAP_SIDES];
};

/** Begin with heap_comparison_init(), add groups of both sides, then heap_comparison_sort(). */
struct heap_comparison {
    struct heap_change *changes;
    size_t count;
    size_t capacity;
    /** Number of changes of each kind; set by heap_comparison_sort(). */
    size_t kinds[HEAP_CHANGE_KINDS];
    struct hash_map by_key;
};

void heap_comparison_init(struct heap_comparison *comparison);
void heap_comparison_free(struct heap_comparison *comparison);

/**
 * Adds a group of blocks. Groups with the same key (`key_high`, `key_low`) become one change, on
 * whichever side they are.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_comparison_add(struct heap_comparison *comparison, enum heap_side side,
                                    uint64_t key_high, uint64_t key_low,
                                    const struct heap_group *group);

/**
 * Sorts the changes by the absolute difference in bytes, then in blocks, largest first, so groups
 * that have not changed come last. Nothing can be added afterwards.
 */
void heap_comparison_sort(struct heap_comparison *comparison);

enum heap_change_kind heap_change_kind_of(const struct heap_change *change);

#endif
