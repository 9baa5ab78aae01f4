/* SPDX-License-Identifier: MIT */
/**
 * Writes the pages of memory snapshots of one trace, each content once: equal pages are shared
 * within a snapshot, and among snapshots. Pages of zeros cost nothing.
 *
 * Whether two pages are the same is decided by a hash of 128 bits, whose seed is a secret: nobody
 * can make two pages of the same hash on purpose.
 */
#ifndef RECORDER_SNAPSHOT_PAGES_PAGE_STORE_H
#define RECORDER_SNAPSHOT_PAGES_PAGE_STORE_H

#include <ttdtrace/writer.h>

enum { STORE_PAGE = 4096 };

struct page_store;

/** Makes the store of a trace; it knows no pages. The writer must outlive it, and nobody else may
 * write pages. Returns NULL if memory ran out, or the system has no randomness. */
struct page_store *page_store_new(struct ttd_writer *writer);
void page_store_free(struct page_store *store);

/** Begins a snapshot. */
void page_store_begin(struct page_store *store, uint32_t snapshot, struct ttd_position position);

/** Adds a page of STORE_PAGE bytes; they are copied. Addresses rise from call to call, in multiples
 * of STORE_PAGE. `protection` is a sum of TTD_MEMORY_... */
void page_store_add(struct page_store *store, uint64_t address, const void *bytes,
                    uint32_t protection);

/** Adds pages whose content is not stored: `page` is TTD_PAGE_ZERO, TTD_PAGE_UNREADABLE or
 * TTD_PAGE_NOT_CAPTURED. */
void page_store_add_absent(struct page_store *store, uint64_t address, uint64_t count,
                           uint32_t page, uint32_t protection);

/**
 * Ends the snapshot, and writes the rest of it: only then it is complete. Returns TTD_OK, or the
 * first failure since it began, of the writer or TTD_ERROR_NO_MEMORY; pages may be missing then.
 */
enum ttd_status page_store_end(struct page_store *store);

#endif
