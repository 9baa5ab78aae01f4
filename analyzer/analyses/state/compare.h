/* SPDX-License-Identifier: MIT */
/** Two states of a heap, and what has grown or shrunk from the old one to the new one. */
#ifndef ANALYZER_ANALYSES_STATE_COMPARE_H
#define ANALYZER_ANALYSES_STATE_COMPARE_H

#include "heap/groups.h"

enum heap_side { HEAP_OLD, HEAP_NEW };

#define HEAP_SIDES 2

/** Changes of a group of blocks: in bytes, or in blocks where the bytes are the same. */
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
    /** The first one that was added; without meaning on a side that has no blocks. */
    struct heap_key keys[HEAP_SIDES];
};

/** See heap_comparison_init(). */
struct heap_comparison {
    struct heap_change *changes;
    size_t count;
    size_t capacity;
    /** Number of changes of each kind; after heap_comparison_sort(). */
    size_t kinds[HEAP_CHANGE_KINDS];
    uint64_t blocks[HEAP_SIDES];
    uint64_t bytes[HEAP_SIDES];
    struct hash_map by_key;
};

void heap_comparison_init(struct heap_comparison *comparison);
void heap_comparison_free(struct heap_comparison *comparison);

/**
 * Adds the blocks of a group. Groups of the same key, on either side, are one.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_comparison_add(struct heap_comparison *comparison, enum heap_side side,
                                    uint64_t key_high, uint64_t key_low,
                                    const struct heap_group *group);

/**
 * Orders by the difference in bytes, then in blocks, in either direction, largest first: what is
 * the same comes last. Nothing can be added afterwards.
 */
void heap_comparison_sort(struct heap_comparison *comparison);

enum heap_change_kind heap_change_kind_of(const struct heap_change *change);

#endif
