/* SPDX-License-Identifier: MIT */
/**
 * Damage of the heap: headers of blocks, which an allocator keeps in front of them, that the
 * program has overwritten. A snapshot has the headers, and the events tell what they must be at
 * least.
 *
 * The size in the header of a live block never changes. So one that is too small for its block, or
 * that claims the memory of another live block, is wrong; and that of a free block is wrong if the
 * recorder says so. While a thread is in a call of the allocator, it may be changing headers, and
 * blocks that it reallocates may not be live any more: nothing is said then, unless the process
 * died of a fault in a call of the allocator, and that is not certain.
 */
#ifndef ANALYZER_ANALYSES_ERRORS_DAMAGE_H
#define ANALYZER_ANALYSES_ERRORS_DAMAGE_H

#include <ttdtrace/reader.h>
#include <ttdtrace/snapshot.h>

#include "heap/heap_live.h"

/** Headers that follow each other in memory. */
struct heap_header_run {
    /** Address of the first header, and where the memory of the last block ends; behind a broken
     * header, where that ends. */
    uint64_t begin;
    uint64_t end;
    /** Index of the first header, and the number of headers. */
    size_t first;
    size_t count;
    /** Of ttd_block_headers. */
    uint32_t flags;
};

struct heap_header {
    uint64_t address;
    uint64_t value;
};

/** The headers of a snapshot. All zero when empty. */
struct heap_headers {
    /** Number 0 if no complete snapshot has headers. */
    struct ttd_snapshot snapshot;
    struct heap_header *headers;
    size_t count;
    size_t capacity;
    struct heap_header_run *runs;
    size_t run_count;
    size_t run_capacity;
};

/**
 * Reads the headers of the newest complete snapshot that has some.
 *
 * @param headers  release with heap_headers_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO.
 */
enum ttd_status heap_headers_read(struct heap_headers *headers, struct ttd_reader *reader,
                                  struct ttd_error *error);
void heap_headers_free(struct heap_headers *headers);

struct error_finder;

/**
 * Compares the headers with the live blocks at the position of their snapshot, and with those that
 * calls had begun to release then and never released. The findings, HEAP_ERROR_HEAP_DAMAGE, are
 * added in the order of their addresses.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT (more headers than a table has room for).
 */
enum ttd_status heap_damage_find(struct error_finder *finder, const struct heap_live *live);

#endif
