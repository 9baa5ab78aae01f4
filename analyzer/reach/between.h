/* SPDX-License-Identifier: MIT */
/**
 * Words of heap memory that lie in no live block, and point at one. Such a word may be
 *
 * - a relic of a block that had this memory before: no root;
 * - a record of the allocator's, which knows its blocks: no root;
 * - a variable of the program's, which may have taken memory from the program break, or beside the
 *   blocks of another allocator: a root.
 *
 * Where a block was before, and the memory is the allocator's still, it is one of the first two:
 * see stale.c. Elsewhere the last two look alike. So all other words are doubtful roots: what only
 * they hold is possibly lost.
 *
 * If the process began with blocks that the trace does not list, its words are classified once the
 * replay has shown them (reach_inherited_apply()).
 *
 * Private to reach/.
 */
#ifndef ANALYZER_REACH_BETWEEN_H
#define ANALYZER_REACH_BETWEEN_H

#include "reach/builder.h"

/** The flags of a root that is to be removed; and of one that was found to be a relic. */
#define REACH_ROOT_DROPPED UINT8_MAX
#define REACH_ROOT_RELIC   (UINT8_MAX - 1)

/** Takes a word: as a root with the flag GRAPH_STALE, which stale.h decides about, or, in a process
 * that began with unlisted blocks, for reach_inherited_apply(). @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status reach_between_add(struct reach_builder *builder,
                                  const struct ttd_reference *reference, uint64_t word,
                                  uint32_t target);

/** Whether a node has a byte from `first` to `last`. */
bool reach_between_has_nodes(const struct heap_reach *reach, uint64_t first, uint64_t last);

/** Whether a block is live in a region of heap memory: then all of that is the allocator's still.
 * Memory of an allocator that was given back may be the program's meanwhile. */
static inline bool reach_between_has_blocks(const struct heap_reach *reach,
                                            const struct ttd_region *region)
{
    return reach_between_has_nodes(reach, region->begin, region->begin + (region->size - 1));
}

/**
 * Removes the roots that were dropped, and lists the relics if `options` ask for them. Roots that
 * are left with the flag GRAPH_STALE own nothing: they get GRAPH_INTERIOR instead, or as well with
 * options->tells_doubtful.
 *
 * @param are_changed  set to whether there were any of these
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status reach_between_settle(struct heap_reach *reach,
                                     const struct heap_reach_options *options, bool *are_changed);

#endif
