/* SPDX-License-Identifier: MIT */
/** Sorting blocks by address, and blocks of one address by heap: a block comes after the block that
 * contains it, since a parent has a lower id than its heaps. */
#ifndef ANALYZER_HEAP_SORT_BLOCKS_H
#define ANALYZER_HEAP_SORT_BLOCKS_H

#include "base/sort.h"
#include "heap/live.h"

/** The key of a block in an array. */
static inline struct sort_key heap_block_key(const struct heap_block *blocks,
                                             const struct heap_block *block)
{
    return (struct sort_key){block->address, (uint32_t)(block - blocks)};
}

/**
 * Sorts keys of blocks, in time proportional to their number.
 *
 * @param spare  room for `count` keys
 */
void heap_sort_blocks(const struct heap_block *blocks, struct sort_key *keys,
                      struct sort_key *spare, size_t count);

/** Compares two blocks for qsort(). */
int heap_compare_blocks(const void *a, const void *b);

#endif
