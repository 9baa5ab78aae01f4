/* SPDX-License-Identifier: MIT */
/** Internals of trees, private to tree*.c: making nodes, and putting them in order. */
#ifndef ANALYZER_VIEW_TREE_PARTS_H
#define ANALYZER_VIEW_TREE_PARTS_H

#include "view/tree.h"

/** The rows of one view on their way into a tree. */
typedef struct view_addition {
    view_tree *tree;
    view *shown;
    heap_side side;
    /** Inward: (first node, stack) to the node of the stack's last call, because stacks share their
     * callers. */
    hash_map stacks;
    ttd_stack *path;
    size_t path_capacity;
} view_addition;

/** Sums stop at the top. */
static inline void view_add_amount(heap_amount *sum, heap_amount amount)
{
    sum->weight = heap_add(sum->weight, amount.weight);
    sum->bytes = heap_add(sum->bytes, amount.bytes);
    sum->count = heap_add(sum->count, amount.count);
}

/** Adds a node, the last one below `parent`. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
ttd_status view_tree_add_node(view_tree *tree, uint32_t parent, uint32_t label);

/** Adds a node for a label of the tree, below another one. */
ttd_status view_tree_add_below(view_tree *tree, uint32_t node, uint32_t label, uint32_t *below);

/** Translates a label of the view into one of the tree. */
ttd_status view_tree_find_label(view_tree *tree, const view *shown, uint32_t label,
                                uint32_t *found);

/** Goes from `node` to the node below it that has a label of the view; makes it if there is none.
 */
ttd_status view_tree_descend(const view_addition *from, uint32_t label, uint32_t *node,
                             bool *is_new);

/** Whether a node is on the last level that the tree may have. */
bool view_tree_is_last(const view_tree *tree, uint32_t node);

/**
 * Goes outward from a stack's caller to the node where it ends, or in whose tail it does. Nodes are
 * made only where stacks part: the frames from a node on that a single stack goes through are the
 * node's tail.
 */
ttd_status view_tree_add_outward(const view_addition *from, const ttd_stack *caller, view_site site,
                                 uint32_t *node);

/** How many nodes there are in the tail of a node. @return TTD_OK, or as view_tree_build(). */
ttd_status view_tail_size(const view_tree *tree, uint32_t node, uint64_t *size);

/**
 * Makes the first node of the tail of `node`, with what is left as its tail; `node` has none then.
 *
 * @param below  set to it, or to VIEW_NO_NODE if there is none
 * @return TTD_OK, or as view_tree_build().
 */
ttd_status view_tail_step(view_tree *tree, uint32_t node, uint32_t *below);

#endif
