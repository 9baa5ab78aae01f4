/* SPDX-License-Identifier: MIT */
/**
 * Strays: live blocks that should lie in a block of another heap, since theirs has a parent, and do
 * not. Either the memory went back with the block around it, and no call told of that; or they
 * never were where the program said. What the trace says of them cannot be true of the memory.
 */
#ifndef ANALYZER_HEAP_STRAYS_H
#define ANALYZER_HEAP_STRAYS_H

#include "heap/live.h"

/** Counts the strays; if memory runs out, all blocks of heaps with a parent count as strays. The
 * table may be without its index. */
uint64_t heap_count_strays(const struct heap_live *live);

#endif
