/* SPDX-License-Identifier: MIT */
#include "heap/locate.h"

#include "heap/sort_blocks.h"

const struct heap_block *heap_live_containing(const struct heap_live *live, uint64_t address)
{
    const struct heap_block *best = NULL;
    const struct heap_block *block;
    size_t cursor = 0;
    while ((block = heap_live_each(live, &cursor))) {
        if (heap_block_covers(block, address, address) &&
            (!best || heap_compare_blocks(block, best) > 0))
            best = block;
    }
    return best;
}
