/* SPDX-License-Identifier: MIT */
#include "analyses/state/neighbours.h"

#include "heap/sort_blocks.h"

static struct heap_neighbour neighbours_of_block(const struct heap_block *block)
{
    return block ? (struct heap_neighbour){block->address, block->size, heap_call_of_block(block)}
                 : (struct heap_neighbour){.allocated = heap_call_none()};
}

/* The table of live blocks is a hash table, so finding the nearest block takes a look at all. */
struct heap_neighbours heap_neighbours_find(const struct heap_live *live, uint64_t address)
{
    const struct heap_block *before = NULL, *after = NULL, *block;
    size_t cursor = 0;
    while ((block = heap_live_each(live, &cursor))) {
        if (heap_block_covers(block, address, address))
            continue;
        if (block->address < address && (!before || block->address > before->address))
            before = block;
        if (block->address > address && (!after || block->address < after->address))
            after = block;
    }
    return (struct heap_neighbours){neighbours_of_block(before), neighbours_of_block(after)};
}
