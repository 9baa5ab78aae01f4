/* SPDX-License-Identifier: MIT */
/**
 * Large pages: with them random access to large tables is quicker, and a system that gives memory
 * page by page gives it sooner. Only hints: where they are not taken, all works as well.
 */
#ifndef ANALYZER_BASE_PAGES_H
#define ANALYZER_BASE_PAGES_H

#include <stddef.h>

/** Of most systems. */
#define LARGE_PAGE ((size_t)2 << 20)

/** Tells the system that memory just allocated will be used all over. */
void pages_hint(void *memory, size_t size);

/**
 * Has malloc() take memory for smaller arrays in large pages, the first 16 MB of it, and keep it;
 * to be called before anything else. Does nothing where memory is limited: it takes some more.
 */
void pages_prepare(void);

#endif
