/* SPDX-License-Identifier: MIT */
/** Locating the block that an address belongs to. */
#ifndef ANALYZER_HEAP_LOCATE_H
#define ANALYZER_HEAP_LOCATE_H

#include "heap/live.h"

/** Returns the last address of a block; that of the address space if a damaged trace has a size
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
