/* SPDX-License-Identifier: MIT */
/** Hints to the system that memory should be in large pages, which make random access to large
 * tables faster and page faults fewer. A system that ignores the hints changes nothing but
 * speed. */
#ifndef ANALYZER_BASE_PAGES_H
#define ANALYZER_BASE_PAGES_H

#include <stddef.h>

/** Size of a large page on most systems. */
#define LARGE_PAGE ((size_t)2 << 20)

/** Tells the system that newly allocated memory will be used completely. */
void pages_hint(void *memory, size_t size);

/** Has the system map memory that is about to be written, in two threads: a system that has to get
 * the pages from elsewhere, as in a virtual machine, takes long for each. Does nothing where pages
 * cannot be mapped beforehand. */
void pages_map(void *memory, size_t size);

/** Makes malloc() take memory for smaller arrays in large pages, the first 16 MB at once, and keep
 * it. Called before anything else. Does nothing where memory is limited, because it takes more
 * than is used. */
void pages_prepare(void);

#endif
