/* SPDX-License-Identifier: MIT */
/** The innermost block of each address, where blocks lie in each other. */
#ifndef ANALYZER_ANALYSES_MEMORY_SEGMENTS_H
#define ANALYZER_ANALYSES_MEMORY_SEGMENTS_H

#include "heap/live.h"

/** Addresses from `first` up to the next segment: the innermost block of all of them is the same.
 */
struct heap_segment {
    uint64_t first;
    /** Index of the block; SIZE_MAX for none. */
    size_t block;
};

/** By address; all zero when empty. */
struct heap_segments {
    struct heap_segment *items;
    size_t count;
};

/** Whether any of the blocks lie in each other. They are sorted by heap_compare_blocks(). */
bool heap_blocks_are_nested(const struct heap_block *blocks, size_t count);

/** Finds the segments of such blocks. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_segments_find(struct heap_segments *segments, const struct heap_block *blocks,
                                   size_t count);
void heap_segments_free(struct heap_segments *segments);

/** Returns the index of the innermost block that an address lies in; SIZE_MAX if there is none. */
size_t heap_segments_block(const struct heap_segments *segments, uint64_t address);

#endif
