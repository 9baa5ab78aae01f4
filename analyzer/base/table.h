/* SPDX-License-Identifier: MIT */
/** Memory for tables, zero at first. Large tables have pages of their own, and grow without being
 * copied, unless pages of others that were freed take them. Any thread may call. */
#ifndef ANALYZER_BASE_TABLE_H
#define ANALYZER_BASE_TABLE_H

#include <stddef.h>

/**
 * Grows a table from `old_size` bytes to `size`, which is more. The added bytes are zero.
 *
 * @param old  NULL with an old_size of 0, or what this function returned for old_size
 * @return the memory, for table_free(), after which `old` is no longer valid; or NULL without
 * memory, with the old table untouched. A large table begins on a page.
 */
void *table_resize(void *old, size_t old_size, size_t size);

/** Returns the next capacity of a full table: twice `capacity`, which is a power of two, or as many
 * records of `size` bytes as fill a large page. Again a power of two. */
size_t table_next(size_t capacity, size_t size);

/** Frees a table. Its pages are kept for other tables.
 * @param table  NULL, or what table_resize() returned for `size` */
void table_free(void *table, size_t size);

/** The same for a table of which no more than the first `used` bytes were touched: pages behind
 * them are not worth keeping. */
void table_free_used(void *table, size_t size, size_t used);

/** The same for a table that a larger one replaces: its pages, which are too few for that, go back
 * to the system. */
void table_give_back(void *table, size_t size);

#endif
