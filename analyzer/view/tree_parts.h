/* SPDX-License-Identifier: MIT */
/* What the parts of a tree share: making nodes, and putting them in order. */
#ifndef ANALYZER_VIEW_TREE_PARTS_H
#define ANALYZER_VIEW_TREE_PARTS_H

#include "view/tree.h"

/** Sums stop at the top. */
static inline void view_add_amount(heap_amount *sum, heap_amount amount)
{
    sum->weight = heap_add(sum->weight, amount.weight);
    sum->bytes = heap_add(sum->bytes, amount.bytes);
    sum->count = heap_add(sum->count, amount.count);
}

/** Adds a node, the last one below `parent`. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
ttd_status view_tree_add_node(view_tree *tree, uint32_t parent, uint32_t label);

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
