/* SPDX-License-Identifier: MIT */
/** An array of copies of blocks, each with the number of its record. */
#ifndef ANALYZER_HEAP_BLOCK_COPIES_H
#define ANALYZER_HEAP_BLOCK_COPIES_H

#include "heap/live.h"

/** All zero when empty. */
struct heap_block_copies {
    struct heap_block *blocks;
    /** The index in heap_live.blocks of each copy's record. */
    uint32_t *records;
    size_t count;
    size_t capacity;
};

void heap_block_copies_free(struct heap_block_copies *copies);

/** Makes room for one more. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_block_copies_grow(struct heap_block_copies *copies);

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static inline enum ttd_status heap_block_copies_add(struct heap_block_copies *copies,
                                                    const struct heap_block *block, uint32_t record)
{
    enum ttd_status status =
        copies->count < copies->capacity ? TTD_OK : heap_block_copies_grow(copies);
    if (status != TTD_OK)
        return status;
    copies->blocks[copies->count] = *block;
    copies->records[copies->count++] = record;
    return TTD_OK;
}

#endif
