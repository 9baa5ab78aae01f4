/* SPDX-License-Identifier: MIT */
/** The tree of heaps at a position. The parent of a heap is the heap in whose blocks the blocks of
 * the heap lie, as with pools that take their memory from malloc. */
#ifndef ANALYZER_ANALYSES_STATE_HEAP_TREE_H
#define ANALYZER_ANALYSES_STATE_HEAP_TREE_H

#include "heap/call.h"
#include "heap/groups.h"
#include "travel/heap_trace.h"

/** No node of a tree. */
#define HEAP_TREE_NONE UINT32_MAX

/** A heap. `parent`, `first_child` and `next_sibling` are indices of nodes, or HEAP_TREE_NONE. */
struct heap_tree_node {
    ttd_id heap;
    /** 0 for a heap without a parent. */
    uint32_t level;
    /** The last Create event; unknown if there is none. */
    struct heap_call created;
    /** The heap does not exist any more at the position, but heaps below it do. */
    bool is_destroyed;
    /** Live blocks of the heap. */
    uint64_t blocks;
    uint64_t bytes;
    /** Live blocks of the children of the heap; they lie in blocks of this one. */
    uint64_t inner_blocks;
    uint64_t inner_bytes;
    /** Private: the heap exists or has live blocks, or a heap below it does. */
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
 * Finds the heaps that have live blocks, those that were created and not destroyed, and all their
 * ancestors. Memory grows with the number of heaps.
 *
 * @param by_heap  live blocks by heap: heap_tables.by[HEAP_BY_HEAP]
 * @param tree     set on TTD_OK, the nodes by heap; release with heap_tree_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, TTD_ERROR_UNSUPPORTED.
 */
enum ttd_status heap_tree_find(const struct heap_trace *trace, struct ttd_position position,
                               const struct heap_groups *by_heap, struct heap_tree *tree,
                               struct ttd_error *error);
void heap_tree_free(struct heap_tree *tree);

/** Returns the node of a heap; NULL if it is not in the tree. */
const struct heap_tree_node *heap_tree_get(const struct heap_tree *tree, ttd_id heap);

/** Walks the tree, parents before their children. Returns the node after `node`, the first node for
 * HEAP_TREE_NONE, and HEAP_TREE_NONE after the last one. */
uint32_t heap_tree_next(const struct heap_tree *tree, uint32_t node);

#endif
