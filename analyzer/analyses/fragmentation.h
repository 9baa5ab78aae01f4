/* SPDX-License-Identifier: MIT */
/** How densely live blocks lie in memory. */
#ifndef ANALYZER_ANALYSES_FRAGMENTATION_H
#define ANALYZER_ANALYSES_FRAGMENTATION_H

#include "heap/live.h"

/** Blocks that lie near each other. */
struct heap_region {
    uint64_t begin;
    /** The last address. */
    uint64_t last;
    uint64_t blocks;
    /** Addresses in blocks, and between them. */
    uint64_t used;
    uint64_t unused;
    uint64_t gaps;
    uint64_t largest_gap;
};

struct heap_fragmentation {
    struct heap_region *items;
    size_t count;
    size_t capacity;
    /** Of all regions; begin and last are 0. */
    struct heap_region total;
};

/**
 * @param blocks   ordered by address
 * @param far      a gap of so many bytes or more separates regions; at least 1
 * @param regions  set on TTD_OK; release with heap_fragmentation_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_fragmentation_find(const struct heap_block *blocks, size_t count, uint64_t far,
                                        struct heap_fragmentation *fragmentation);
void heap_fragmentation_free(struct heap_fragmentation *fragmentation);

#endif
