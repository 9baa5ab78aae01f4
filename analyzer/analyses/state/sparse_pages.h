/* SPDX-License-Identifier: MIT */
/** Sparse pages: pages of memory of which live blocks cover so little that the blocks, by staying
 * where they are, keep much more memory than they have. */
#ifndef ANALYZER_ANALYSES_STATE_SPARSE_PAGES_H
#define ANALYZER_ANALYSES_STATE_SPARSE_PAGES_H

#include "base/map.h"
#include "heap/live.h"
#include "heap/site_table.h"

/** The size of a page; and the bytes in blocks from which on it is not sparse. */
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
    /** Pages with a live block, and those of them that are sparse. */
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

/** The sites as a table. Their weight is `kept`. */
struct heap_site_table heap_sparse_site_table(struct heap_sparse_pages *sparse);

#endif
