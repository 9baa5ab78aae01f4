/* SPDX-License-Identifier: MIT */
#include "heap/block_copies.h"

#include <stdlib.h>

#include "base/grow.h"

void heap_block_copies_free(struct heap_block_copies *copies)
{
    free(copies->blocks);
    free(copies->records);
    *copies = (struct heap_block_copies){.count = 0};
}

enum ttd_status heap_block_copies_grow(struct heap_block_copies *copies)
{
    /* Only when both have more room is there more. */
    size_t for_blocks = copies->capacity;
    size_t for_records = copies->capacity;
    enum ttd_status status = grow_array((void **)&copies->blocks, &for_blocks, copies->count + 1,
                                        sizeof *copies->blocks);
    if (status == TTD_OK)
        status = grow_array((void **)&copies->records, &for_records, copies->count + 1,
                            sizeof *copies->records);
    if (status == TTD_OK)
        copies->capacity = for_records;
    return status;
}
