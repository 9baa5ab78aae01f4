/* SPDX-License-Identifier: MIT */
/** Comparison of two states of a heap: the groups of blocks that have grown or shrunk. */
#ifndef ANALYZER_ANALYSES_STATE_COMPARE_H
#define ANALYZER_ANALYSES_STATE_COMPARE_H

#include "heap/groups.h"

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
