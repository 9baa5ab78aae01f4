/* SPDX-License-Identifier: MIT */
/** Memory for tables, zero at first. A large table has pages of its own and mostly grows without
 * being copied, or reuses pages of tables that were freed. All functions are thread-safe. */
#ifndef ANALYZER_BASE_TABLE_H
#define ANALYZER_BASE_TABLE_H

#include <stddef.h>

/* Hints to the system that memory should be in large pages: random access to large tables is faster
 * and page faults are fewer. A system that ignores the hints changes nothing but speed. */

/** Size of a large page on most systems. */
#define LARGE_PAGE ((size_t)2 << 20)

/** Advises the system that newly allocated memory will be used completely. */
void pages_hint(void *memory, size_t size);

/** Has the system map memory that is about to be written, in two threads: a system that has to get
 * the pages from elsewhere, as in a virtual machine, takes long for each. Does nothing where pages
 * cannot be mapped beforehand. */
void pages_map(void *memory, size_t size);

/** Makes malloc() take memory for smaller arrays in large pages, the first 16 MB at once, and keep
 * it. Called before anything else. Does nothing where memory is limited, because it takes more
 * than is used. */
void pages_prepare(void);

/**
 * Grows a table from `old_size` bytes to `size` (more). The added bytes are zero.
 *
 * @param old  NULL with an old_size of 0, or the result of this function for old_size
 * @return the memory, for table_free(); `old` is no longer valid; or NULL without memory, with the
 * old table untouched. A large table begins on a page.
 */
void *table_resize(void *old, size_t old_size, size_t size);

/** Returns the next capacity of a full table: twice `capacity` (a power of two), or as many records
 * of `size` bytes as fill a large page. Again a power of two. */
size_t table_next(size_t capacity, size_t size);

/** Frees a table. Its pages are kept for other tables.
 * @param table  NULL, or the result of table_resize() for `size` */
void table_free(void *table, size_t size);

/** Frees a table like table_free(), but keeps only the pages of its first `used` bytes: most
 * of those behind were never touched, so they would save nothing. */
void table_free_used(void *table, size_t size, size_t used);

/** Frees a table that a larger one has replaced. Its pages go back to the system, because they are
 * too few for the tables to come. */
void table_give_back(void *table, size_t size);

/** Gives all pages back to the system that are kept for other tables, so that any memory may be
 * made of them. */
void table_give_back_kept(void);

#endif
