/* SPDX-License-Identifier: MIT */
/** Rows by stack as a tree of calls. */
#ifndef ANALYZER_VIEW_TREE_H
#define ANALYZER_VIEW_TREE_H

#include "view/view.h"

/** A tree has no more nodes, which take some 130 bytes each while it is made: stacks that share
 * little are a thousand times larger as a tree than in a trace. */
#define VIEW_NODES_MAX (UINT32_C(1) << 23)

/** No node. */
#define VIEW_NO_NODE UINT32_MAX

typedef struct view_node {
    uint32_t label;
    uint32_t parent;
    /** Levels above it; 0 for those that are in no other. */
    uint32_t depth;
    /** Of it and all below it; and of stacks that end with it. */
    heap_amount all;
    heap_amount self;
    /** Those below it, the heaviest first: the first, how many, and the next beside this one. */
    uint32_t first;
    uint32_t count;
    uint32_t next;
    /** How many come before it beside it. */
    uint32_t rank;
    /** How often the tree has branched on the way to it. */
    uint32_t branches;
} view_node;

/** nodes[0] is no call: all others are below it. */
typedef struct view_tree {
    view_node *nodes;
    size_t count;
    size_t capacity;
    hash_map index;
} view_tree;

/**
 * Makes a tree of rows: by function, unless by file or module; frames of the same file or module
 * that follow each other are one. By thread or heap, these come first. Rows without weight are
 * left out if nothing of them counts.
 *
 * @param tree  set on TTD_OK; release with view_tree_free()
 * @return TTD_OK, TTD_ERROR_LIMIT for more than VIEW_NODES_MAX nodes, TTD_ERROR_NO_MEMORY.
 */
ttd_status view_tree_build(view *shown, const heap_rows *rows, view_tree *tree);
void view_tree_free(view_tree *tree);

/**
 * The node after another, depth first, of each only the first `limit` below it; begins with node
 * 0, which is not returned. VIEW_NO_NODE at the end.
 */
uint32_t view_tree_next(const view_tree *tree, uint32_t node, size_t limit);

/** What a node stands for. */
static inline const view_label *view_tree_label(const view *shown, const view_node *node)
{
    return &shown->labels.items[node->label];
}

#endif
