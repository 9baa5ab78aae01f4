/* SPDX-License-Identifier: MIT */
#include "heap/sort_blocks.h"

int heap_compare_blocks(const void *a, const void *b)
{
    const struct heap_block *x = a;
    const struct heap_block *y = b;
    if (x->address != y->address)
        return x->address > y->address ? 1 : -1;
    return (x->heap > y->heap) - (x->heap < y->heap);
}

void heap_sort_blocks(const struct heap_block *blocks, struct sort_key *keys,
                      struct sort_key *spare, size_t count)
{
    sort_keys(keys, spare, count);
    /* Insertion: an address has few blocks, most often one. */
    for (size_t i = 1; i < count; i++) {
        struct sort_key key = keys[i];
        size_t gap = i;
        for (; gap > 0 && keys[gap - 1].value == key.value &&
               blocks[keys[gap - 1].index].heap > blocks[key.index].heap;
             gap--)
            keys[gap] = keys[gap - 1];
        keys[gap] = key;
    }
}

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
