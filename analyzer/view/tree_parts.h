/* SPDX-License-Identifier: MIT */
/** Internals of trees, private to tree*.c: making nodes, and putting them in order. */
#ifndef ANALYZER_VIEW_TREE_PARTS_H
#define ANALYZER_VIEW_TREE_PARTS_H

#include "view/tree.h"

/** The records of one view that are being added to a tree. */
struct view_addition {
    struct view_tree *tree;
    struct view *view;
    enum heap_side side;
    /** For inward trees, the node of a stack's last call by (outermost node, stack): stacks share
     * their callers. */
    struct hash_map stacks;
    struct ttd_stack *path;
    size_t path_capacity;
};

/** Adds to a sum; it stops at the largest value. */
static inline void view_add_amount(struct heap_amount *sum, struct heap_amount amount)
{
    sum->weight = heap_add(sum->weight, amount.weight);
    sum->bytes = heap_add(sum->bytes, amount.bytes);
    sum->count = heap_add(sum->count, amount.count);
}

/** Adds a node, the last one below `parent`. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status view_tree_add_node(struct view_tree *tree, uint32_t parent, uint32_t label);

/** Adds a node for a label of the tree, below another one. */
enum ttd_status view_tree_add_below(struct view_tree *tree, uint32_t node, uint32_t label,
                                    uint32_t *child);

/** Translates a label of the view into one of the tree. */
enum ttd_status view_tree_find_label(struct view_tree *tree, const struct view *view,
                                     uint32_t label, uint32_t *label_id);

/** Moves `node` to the node below it that has a label of the view; makes it if there is none.
 */
enum ttd_status view_tree_descend(const struct view_addition *addition, uint32_t label,
                                  uint32_t *node, bool *is_new);

/** Whether a node is on the last level that the tree may have. */
bool view_tree_is_last(const struct view_tree *tree, uint32_t node);

/** Moves `node` outward from the caller of `stack` to the node where that ends, or whose tail it is
 * in. The end of a stack that is cut has a node for its unknown callers. Nodes are made only where
 * stacks part: the frames that only one stack goes through are the tail of a node. */
enum ttd_status view_tree_add_outward(const struct view_addition *addition, ttd_id stack,
                                      const struct ttd_stack *caller, struct view_site site,
                                      uint32_t *node);

/** Counts the nodes of a tail. @return TTD_OK, or as view_tree_build(). */
enum ttd_status view_tail_size(const struct view_tree *tree, uint32_t node, uint64_t *size);

/**
 * Makes the first node of the tail of `node`. The rest of the tail becomes its tail, and `node` has
 * none.
 *
 * @param child  set to the new node, or to VIEW_NO_NODE if there is none
 * @return TTD_OK, or as view_tree_build().
 */
enum ttd_status view_tail_step(struct view_tree *tree, uint32_t node, uint32_t *child);

#endif
