/* SPDX-License-Identifier: MIT */
/**
 * Words of heap memory that lie in no live block, and point at one. Such a word may be
 *
 * - a relic of a block that had this memory before: no root. It may be one if that block was
 *   released after the target was allocated;
 * - a record of the allocator's, which knows its blocks: no root;
 * - a variable of the program's, which may have taken memory from the program break, or beside the
 *   blocks of another allocator: a root.
 *
 * The last two look alike. So all words that are no relics are doubtful roots: what only they hold
 * is possibly lost.
 *
 * If the process began with blocks that the trace does not list, see inherited.h instead.
 *
 * Private to reach/.
 */
#ifndef ANALYZER_REACH_BETWEEN_H
#define ANALYZER_REACH_BETWEEN_H

#include "reach/builder.h"

/** The flags of a root that is to be removed. */
#define REACH_ROOT_DROPPED UINT8_MAX

/** Takes a word: as a root with the flag GRAPH_STALE, which stale.h decides about, or for
 * inherited.h. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status reach_between_add(struct reach_builder *builder,
                                  const struct ttd_reference *reference, uint64_t word,
                                  uint32_t target);

/** Whether a block is live in a region of heap memory: then all of that is the allocator's still.
 * Memory of an allocator that was given back may be the program's meanwhile. */
bool reach_between_has_blocks(const struct heap_reach *reach, const struct ttd_region *region);

/** Removes the roots that were dropped. Those that are left with the flag GRAPH_STALE own nothing:
 * they get GRAPH_INTERIOR instead, or as well if `tells_doubtful`. Returns whether there were any
 * of either. */
bool reach_between_settle(struct graph *graph, bool tells_doubtful);

#endif
