/* SPDX-License-Identifier: MIT */
/** Memory for tables: zero at first. Large ones are pages of their own and grow without being
 * copied. */
#ifndef ANALYZER_BASE_TABLE_H
#define ANALYZER_BASE_TABLE_H

#include <stddef.h>

/**
 * Makes `size` bytes, more than before, of what was `old_size` bytes at `old`, or of nothing. What
 * is new is zero.
 *
 * @param old  NULL with an old_size of 0, or what this returned for old_size
 * @return the memory, for table_free(), and `old` is no longer valid; or NULL without memory, with
 *         the old one untouched. A large table begins with a page.
 */
void *table_resize(void *old, size_t old_size, size_t size);

/** How many items of `size` bytes a table is to have that has `capacity` of them, a power of two,
 * and is full: twice as many, or what fills a large page. Again a power of two. */
size_t table_next(size_t capacity, size_t size);

/** @param table  NULL, or what table_resize() returned for `size` */
void table_free(void *table, size_t size);

#endif
