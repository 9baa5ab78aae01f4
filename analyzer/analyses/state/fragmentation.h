/* SPDX-License-Identifier: MIT */
/** Fragmentation: the regions of memory that live blocks lie in, and the gaps between them. */
#ifndef ANALYZER_ANALYSES_STATE_FRAGMENTATION_H
#define ANALYZER_ANALYSES_STATE_FRAGMENTATION_H

#include "base/hash_map.h"
#include "heap/heap_live.h"
#include "heap/site_table.h"
#include "travel/pass.h"

/* Sparse pages: pages where live blocks cover little, so that a few blocks keep much more memory
 * than they have. */

/** The size of a page; and the bytes in blocks that make it no longer sparse. */
#define HEAP_PAGE        UINT64_C(4096)
#define HEAP_PAGE_SPARSE (HEAP_PAGE / 4)

/** The blocks of one call site in sparse pages. */
struct heap_sparse_site {
    struct heap_key key;
    /** The blocks and their bytes in such pages; a block that lies in two of them counts twice. */
    uint64_t blocks;
    uint64_t bytes;
    /** The share of the bytes of these pages that are in no block: blocks of one page share them
     * alike. */
    uint64_t kept;
};

struct heap_sparse_pages {
    /** Pages with a live block, and the sparse ones among them. */
    uint64_t pages;
    uint64_t sparse;
    /** Sums over the sites. */
    struct heap_sparse_site total;
    struct heap_sparse_site *sites;
    size_t count;
    size_t capacity;
    struct hash_map by_key;
};

/**
 * @param blocks  in the order of their addresses
 * @param sparse  release with heap_sparse_pages_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_sparse_pages_find(const struct heap_block *blocks, size_t count,
                                       struct heap_sparse_pages *sparse);
void heap_sparse_pages_free(struct heap_sparse_pages *sparse);

/**
 * Finds them during a pass, of the blocks that are live at a position.
 *
 * @param sparse  release with heap_sparse_pages_free(), also on failure; stays where it is
 */
void heap_sparse_pages_watch(struct heap_sparse_pages *sparse, struct ttd_position at,
                             struct heap_pass *pass);

/** The sites as a table. Their weight is `kept`. */
struct heap_site_table heap_sparse_site_table(struct heap_sparse_pages *sparse);

/** The bytes in a gap from which on it may have room for a block. Narrower ones are what an
 * allocator needs between blocks: headers, and sizes that are rounded up. glibc has no block with
 * less. */
#define HEAP_GAP_FREE 32

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
    /** Number of addresses in gaps of less than HEAP_GAP_FREE. */
    uint64_t overhead;
    uint64_t largest_gap;
};

struct heap_fragmentation_options {
    struct ttd_position at;
    /** Smallest gap, in bytes, that separates regions; at least 1. */
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

/** Adds a block to `fragmentation` (all zero at first); blocks come in the order of their
 * addresses.
 * @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_fragmentation_add(struct heap_fragmentation *fragmentation,
                                       const struct heap_block *block, uint64_t separating);

/** Sets the total, when all blocks were added. */
void heap_fragmentation_sum_up(struct heap_fragmentation *fragmentation);

#endif
