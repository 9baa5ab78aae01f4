/* SPDX-License-Identifier: MIT */
/** Trees of calls, made of records by stack. */
#ifndef ANALYZER_VIEW_TREE_H
#define ANALYZER_VIEW_TREE_H

#include "analyses/state/diff.h"
#include "view/view.h"

/** Index of no node. */
#define VIEW_NO_NODE UINT32_MAX

/** The tail of a node: the remaining frames of the only stack that continues below the node. The
 * nodes of a tail are made only when they are shown, because an outward tree of stacks that share
 * few frames would be a thousand times larger than the trace. */
struct view_tail {
    /** False for an empty tail. */
    bool has_more;
    /** The stack is of the old heap. */
    bool is_old;
    /** Unknown callers come after the last frame. */
    bool is_cut;
    /** Label, in the view, of the frame before the tail. */
    uint32_t last;
    /** The stack that remains, and the number of frames of its innermost address that the tail
     * begins with. */
    ttd_id stack;
    uint32_t left;
};

struct view_node {
    uint32_t label;
    uint32_t parent;
    /** Levels above the node; 0 for the outermost ones. */
    uint32_t depth;
    struct view_tail tail;
    /** Amount of the node and all nodes below it; and amount of the stacks that end with the node
     * or with its tail. */
    struct heap_amount total;
    struct heap_amount self;
    /** The children, heaviest first: the first child and the number of children; and the next
     * sibling of this node. */
    uint32_t first;
    uint32_t count;
    uint32_t next;
    /** Number of siblings before this node. */
    uint32_t rank;
    /** Number of branchings between the root and the node. */
    uint32_t branches;
};

/** Further sums of a node in a tree of two heaps: the amounts in the old heap, while view_node has
 * the new amounts; and the sum, over all stacks at the node and below, of the absolute change
 * of each stack. */
struct view_sums {
    struct heap_amount total;
    struct heap_amount self;
    uint64_t changed_bytes;
    uint64_t changed_blocks;
};

/** A tree of calls. nodes[0] is the root; it is no call. */
struct view_tree {
    struct view_node *nodes;
    size_t count;
    size_t capacity;
    /** Sums in the old heap, by node; NULL for a tree of one heap. */
    struct view_sums *old;
    size_t old_capacity;
    bool is_of_two;
    /** Labels are made by label_across(). */
    bool is_across;
    /** Number of nodes, including nodes of tails, without the root and nodes that were left out. */
    size_t linked;
    /** Limit on levels. */
    uint64_t levels;
    /** The view of each heap; NULL before any of its records was added. Not owned. */
    struct view *views[HEAP_SIDES];
    /** Not owned. */
    struct label_table *labels;
    struct hash_map index;
};

/**
 * Builds a tree of records by function, or by file or module if the view says so; then adjacent
 * frames of the same file or module are one node. By thread or heap, these are the outermost nodes.
 * A record without weight is left out if its count is 0 as well.
 *
 * @param limit  nodes that will be shown below each node
 * @param tree   set on TTD_OK; release with view_tree_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT (no steps through stacks are left).
 */
enum ttd_status view_tree_build(struct view *view, const struct heap_site_table *sites,
                                size_t limit, struct view_tree *tree);
void view_tree_free(struct view_tree *tree);

/**
 * Begins a tree of the differences of two heaps. The records of both follow with view_tree_add(),
 * then view_tree_end().
 *
 * @param labels     of both heaps, not owned
 * @param is_across  the heaps are of two traces: these agree in names but not in addresses
 * @param tree       release with view_tree_free(), also on failure
 * @return as view_tree_build().
 */
enum ttd_status view_tree_begin(struct view_tree *tree, struct label_table *labels, bool is_across);
enum ttd_status view_tree_add(struct view_tree *tree, struct view *view,
                              const struct heap_site_table *sites, enum heap_side side);

/** The part of a tree that is shown. */
struct view_tree_scope {
    /** Number of levels; UINT64_MAX for all. */
    uint64_t levels;
    /** Nodes that are shown below each node. */
    size_t limit;
    /** Unchanged nodes are included. */
    bool has_same;
};

/**
 * Completes a tree: sums its nodes and sorts them, those that changed most first.
 *
 * @return as view_tree_build().
 */
enum ttd_status view_tree_end(struct view_tree *tree, const struct view_tree_scope *scope);

/** Returns the number of levels that the options ask for. */
uint64_t view_tree_levels(const struct view_options *options);

/** Returns the node after another in depth-first order, with only the first `limit` nodes below
 * each. Begins with the root; it is not returned; VIEW_NO_NODE at the end. */
uint32_t view_tree_next(const struct view_tree *tree, uint32_t node, size_t limit);

/** Returns the label of a node. */
static inline const struct view_label *view_tree_label(const struct view_tree *tree,
                                                       const struct view_node *node)
{
    return &tree->labels->labels[node->label];
}

#endif
