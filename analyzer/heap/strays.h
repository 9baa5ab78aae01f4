/* SPDX-License-Identifier: MIT */
/**
 * Strays: live blocks of a heap with a parent that lie in no block of the parent. Either their
 * memory was released with the block around them and no call reported it, or the program reported
 * wrong addresses. What the trace says about them cannot be true of the memory.
 */
#ifndef ANALYZER_HEAP_STRAYS_H
#define ANALYZER_HEAP_STRAYS_H

#include "heap/live.h"

/** Counts the strays. If memory runs out, all blocks of heaps with a parent count as strays. Works
 * without the index of the table. */
uint64_t heap_count_strays(const struct heap_live *live);

#endif
