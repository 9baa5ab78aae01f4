/* SPDX-License-Identifier: MIT */
#include "heap/rows.h"

static ttd_id class_of(uint64_t size)
{
    return size ? (ttd_id)(64 - __builtin_clzll(size)) : 0;
}

heap_key heap_key_of_block(heap_split split, const heap_block *block)
{
    if (split == HEAP_SPLIT_SIZE)
        return (heap_key){block->stack, class_of(block->size)};
    return heap_key_of(split, block->stack, block->thread, block->heap);
}

int heap_key_compare(heap_key a, heap_key b)
{
    if (a.stack != b.stack)
        return a.stack > b.stack ? 1 : -1;
    return (a.other > b.other) - (a.other < b.other);
}
