/* SPDX-License-Identifier: MIT */
/** The tree of heaps at a position: each below the heap in whose blocks its own lie. */
#ifndef ANALYZER_ANALYSES_STATE_HEAP_TREE_H
#define ANALYZER_ANALYSES_STATE_HEAP_TREE_H

#include "heap/call.h"
#include "heap/groups.h"
#include "travel/trace.h"

/** No node of a tree. */
#define HEAP_TREE_NONE UINT32_MAX

/** A heap. Links are indices of nodes. */
struct heap_tree_node {
    ttd_id heap;
    /** 0 for a heap without a parent. */
    uint32_t level;
    /** The last Create event; unknown if there is none. */
    struct heap_call created;
    /** It was destroyed at the position: only heaps and blocks below it are left. */
    bool is_destroyed;
    /** Its own live blocks. */
    uint64_t blocks;
    uint64_t bytes;
    /** The live blocks of the heaps right below it, which lie in its own. */
    uint64_t inner_blocks;
    uint64_t inner_bytes;
    /** Something is left in or below it. */
    bool is_needed;
    uint32_t parent;
    uint32_t first_child;
    uint32_t next_sibling;
};

struct heap_tree {
    struct heap_tree_node *nodes;
    size_t count;
    size_t capacity;
};

/**
 * Finds the heaps that have live blocks, those that were created and not destroyed, and all that
 * these lie in. Takes memory by the number of heaps.
 *
 * @param by_heap  live blocks by heap, as heap_tables has them
 * @param tree     set on TTD_OK, the nodes by heap; release with heap_tree_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, TTD_ERROR_UNSUPPORTED.
 */
enum ttd_status heap_tree_find(const struct heap_trace *trace, struct ttd_position at,
                               const struct heap_groups *by_heap, struct heap_tree *tree,
                               struct ttd_error *error);
void heap_tree_free(struct heap_tree *tree);

/** Returns the node after another one, parents before what lies in them; the first one after
 * HEAP_TREE_NONE, which also ends the walk. */
uint32_t heap_tree_next(const struct heap_tree *tree, uint32_t node);

#endif
