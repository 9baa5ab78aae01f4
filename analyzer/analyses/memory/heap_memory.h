/* SPDX-License-Identifier: MIT */
/** The contents of a range of memory at a position, and the blocks that lay there. */
#ifndef ANALYZER_ANALYSES_MEMORY_HEAP_MEMORY_H
#define ANALYZER_ANALYSES_MEMORY_HEAP_MEMORY_H

#include "contents/contents.h"
#include "heap/heap_live.h"
#include "travel/replay_to.h"

/* The innermost block of each address, where blocks lie in each other. */

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

struct heap_memory_options {
    struct ttd_position at;
    /** The range of addresses, both ends included. */
    uint64_t first;
    uint64_t last;
    /** Keeps all live blocks, not only those that lie in the range. */
    bool keeps_all_blocks;
};

struct heap_memory {
    struct heap_outcome outcome;
    struct heap_memory_options options;
    struct heap_snapshots snapshots;
    struct contents_extents extents;
    /** Reads each page when it is asked for, with the reader of the trace. */
    struct contents_pages pages;
    /** The live blocks, sorted by address. */
    struct heap_block *blocks;
    size_t block_count;
    /** Empty if no block lies in another. */
    struct heap_segments segments;
};

/**
 * @param memory  set on TTD_OK; release with heap_memory_free(). The trace must outlive it
 * @return as heap_state_find().
 */
enum ttd_status heap_memory_find(const struct heap_trace *trace,
                                 const struct heap_memory_options *options,
                                 struct heap_memory *memory, struct ttd_error *error);
void heap_memory_free(struct heap_memory *memory);

/** Returns the innermost live block that contains an address, or NULL. */
const struct heap_block *heap_memory_block(const struct heap_memory *memory, uint64_t address);

/** Whether the snapshot of a part of the memory was taken before `block` was allocated there. If
 * so, the bytes do not belong to the block. */
bool heap_memory_is_older(const struct heap_memory *memory, const struct contents_part *part,
                          const struct heap_block *block);

#endif
