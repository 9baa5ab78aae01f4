/* SPDX-License-Identifier: MIT */
/** The parents of heaps: a parent is a heap whose blocks contain the blocks of another heap. */
#ifndef ANALYZER_HEAP_PARENTS_H
#define ANALYZER_HEAP_PARENTS_H

#include <ttdtrace/reader.h>

#include "base/hash_map.h"

/** Parents by heap; all zero when empty. */
struct heap_parents {
    struct hash_map by_heap;
};

void heap_parents_free(struct heap_parents *parents);

/** Adds the records of a batch; batches of other kinds are ignored. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_parents_add(struct heap_parents *parents, const struct ttd_batch *batch);

/** Copies the parents into `copy`, which is empty. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_parents_copy(struct heap_parents *copy, const struct heap_parents *parents);

/** Returns the parent of a heap; TTD_NONE if it takes its memory from the system. */
static inline ttd_id heap_parents_get(const struct heap_parents *parents, ttd_id heap)
{
    uint32_t parent = map_get(&parents->by_heap, heap, 0);
    return parent == MAP_NONE ? TTD_NONE : parent;
}

#endif
