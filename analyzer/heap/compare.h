/* SPDX-License-Identifier: MIT */
/** Two states of a heap, and what has grown or shrunk from the old one to the new one. */
#ifndef ANALYZER_HEAP_COMPARE_H
#define ANALYZER_HEAP_COMPARE_H

#include "heap/groups.h"

typedef enum heap_side { HEAP_OLD, HEAP_NEW } heap_side;

#define HEAP_SIDES 2

/** By bytes; if these are the same, by blocks. */
typedef enum heap_change_kind {
    HEAP_CHANGE_ADDED,
    HEAP_CHANGE_GONE,
    HEAP_CHANGE_GROWN,
    HEAP_CHANGE_SHRUNK,
    HEAP_CHANGE_SAME
} heap_change_kind;

#define HEAP_CHANGE_KINDS 5

/** The blocks of one key in both states. */
typedef struct heap_change {
    uint64_t blocks[HEAP_SIDES];
    uint64_t bytes[HEAP_SIDES];
    /** The first one that was added; without meaning on a side that has no blocks. */
    heap_key keys[HEAP_SIDES];
} heap_change;

/** See heap_comparison_init(). */
typedef struct heap_comparison {
    heap_change *items;
    size_t count;
    size_t capacity;
    /** How many there are of each kind; after heap_comparison_sort(). */
    size_t kinds[HEAP_CHANGE_KINDS];
    uint64_t blocks[HEAP_SIDES];
    uint64_t bytes[HEAP_SIDES];
    hash_map by_key;
} heap_comparison;

void heap_comparison_init(heap_comparison *comparison);
void heap_comparison_free(heap_comparison *comparison);

/**
 * Adds the blocks of a group. Groups of the same key, on either side, are one.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
ttd_status heap_comparison_add(heap_comparison *comparison, heap_side side, uint64_t key_high,
                               uint64_t key_low, const heap_group *group);

/**
 * Orders by the difference in bytes, then in blocks, in either direction, largest first: what is
 * the same comes last. Nothing can be added afterwards.
 */
void heap_comparison_sort(heap_comparison *comparison);

heap_change_kind heap_change_kind_of(const heap_change *change);

#endif
