/* SPDX-License-Identifier: MIT */
/** Sorting blocks by address, and blocks of one address by heap: a block comes after the block that
 * contains it, since a parent has a lower id than its heaps. */
#ifndef ANALYZER_HEAP_SORT_BLOCKS_H
#define ANALYZER_HEAP_SORT_BLOCKS_H

#include "base/sort.h"
#include "heap/heap_live.h"

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

/* Locating the block that an address belongs to. */

/** Returns the last address of a block; the last of the address space if a damaged trace has a size
 * that reaches beyond it. A block of no bytes has its own address. */
static inline uint64_t heap_block_last(const struct heap_block *block)
{
    uint64_t reach = block->size ? block->size - 1 : 0;
    return reach > UINT64_MAX - block->address ? UINT64_MAX : block->address + reach;
}

/** Whether `block` covers an address from `first` to `last`. A block of no bytes covers its own
 * address. */
static inline bool heap_block_covers(const struct heap_block *block, uint64_t first, uint64_t last)
{
    uint64_t reach = block->size ? block->size - 1 : 0;
    return block->address <= last && (block->address >= first || first - block->address <= reach);
}

/**
 * Returns the live block that covers `address`, the innermost one if they are nested; NULL if there
 * is none. Looks at every block.
 */
const struct heap_block *heap_live_containing(const struct heap_live *live, uint64_t address);

#endif
