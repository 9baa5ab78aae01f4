/* SPDX-License-Identifier: MIT */
/** Fragmentation: the regions of memory that live blocks lie in, and the gaps between them. */
#ifndef ANALYZER_ANALYSES_STATE_FRAGMENTATION_H
#define ANALYZER_ANALYSES_STATE_FRAGMENTATION_H

#include "analyses/state/sparse_pages.h"
#include "heap/live.h"
#include "travel/replay_to.h"

/** A region: blocks with no large gap between them. */
struct heap_region {
    uint64_t begin;
    /** The last address. */
    uint64_t last;
    uint64_t blocks;
    /** Number of addresses in blocks, and in gaps between them. */
    uint64_t used;
    uint64_t unused;
    /** Number of gaps. */
    uint64_t gaps;
    uint64_t largest_gap;
};

struct heap_fragmentation_options {
    struct ttd_position at;
    /** Size of a gap, in bytes, from which on it separates regions; at least 1. */
    uint64_t gap;
};

struct heap_fragmentation {
    struct heap_outcome outcome;
    struct heap_region *regions;
    size_t count;
    size_t capacity;
    /** Sums over all regions; begin and last are 0. */
    struct heap_region total;
    /** Set by heap_fragmentation_find() only. */
    struct heap_sparse_pages sparse;
};

/**
 * @param fragmentation  set on TTD_OK; release with heap_fragmentation_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_fragmentation_find(const struct heap_trace *trace,
                                        const struct heap_fragmentation_options *options,
                                        struct heap_fragmentation *fragmentation,
                                        struct ttd_error *error);
void heap_fragmentation_free(struct heap_fragmentation *fragmentation);

/* For a caller that has the blocks. */

/** Adds a block to `fragmentation`, which is all zero at first; blocks come in the order of their
 * addresses. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_fragmentation_add(struct heap_fragmentation *fragmentation,
                                       const struct heap_block *block, uint64_t separating);

/** Sets the total, when all blocks were added. */
void heap_fragmentation_sum_up(struct heap_fragmentation *fragmentation);

#endif
