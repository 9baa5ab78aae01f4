/* SPDX-License-Identifier: MIT */
/** Rows by stack as a tree of calls. */
#ifndef ANALYZER_VIEW_TREE_H
#define ANALYZER_VIEW_TREE_H

#include "analyses/compare.h"
#include "view/view.h"

/** No node. */
#define VIEW_NO_NODE UINT32_MAX

/** The rest of a single stack below a node, of which nodes are made only when they are needed:
 * stacks that share little are a thousand times larger as an outward tree than in a trace. */
struct view_tail {
    /** If not, the tail is empty. */
    bool has_more;
    /** A stack of the old heap. */
    bool is_old;
    /** The view's label of the frame before. */
    uint32_t last;
    /** Begins so many frames before the end of those of this stack's address. */
    ttd_id stack;
    uint32_t left;
};

struct view_node {
    uint32_t label;
    uint32_t parent;
    /** Levels above it; 0 for those that are in no other. */
    uint32_t depth;
    struct view_tail tail;
    /** Of it and all below it; and of stacks that end with it, or with its tail. */
    struct heap_amount total;
    struct heap_amount self;
    /** Those below it, the heaviest first: the first, how many, and the next beside this one. */
    uint32_t first;
    uint32_t count;
    uint32_t next;
    /** How many come before it beside it. */
    uint32_t rank;
    /** How often the tree has branched on the way to it. */
    uint32_t branches;
};

/** Of a node of a tree of two heaps: what view_node has of the new one, in the old one; and how
 * much has changed at it and below, in either direction, from stack to stack. */
struct view_sums {
    struct heap_amount total;
    struct heap_amount self;
    uint64_t changed_bytes;
    uint64_t changed_blocks;
};

/** nodes[0] is no call: all others are below it. */
struct view_tree {
    struct view_node *nodes;
    size_t count;
    size_t capacity;
    /** Of two heaps, by node; NULL for one heap. */
    struct view_sums *old;
    size_t old_capacity;
    bool is_of_two;
    /** Labels are as label_across() makes them. */
    bool is_across;
    /** How many nodes there are, those of tails included: all but nodes[0] and what was left out.
     */
    size_t linked;
    /** How many levels it may have. */
    uint64_t levels;
    /** The view of each side; NULL if none of its rows was added. Not owned. */
    struct view *views[HEAP_SIDES];
    /** Not owned. */
    struct label_table *labels;
    struct hash_map index;
};

/**
 * Makes a tree of rows: by function, unless by file or module; frames of the same file or module
 * that follow each other are one. By thread or heap, these come first. Rows without weight are
 * left out if nothing of them counts.
 *
 * @param limit  how many nodes below each will be shown
 * @param tree   set on TTD_OK; release with view_tree_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT for more steps through stacks than are left.
 */
enum ttd_status view_tree_build(struct view *view, const struct heap_rows *rows, size_t limit,
                                struct view_tree *tree);
void view_tree_free(struct view_tree *tree);

/**
 * Begins a tree of what two heaps differ in, as view_tree_build() of each would be. Then come the
 * rows of both, and view_tree_end().
 *
 * @param labels     of both, and not owned
 * @param is_across  of two traces, which agree in names but not in addresses
 * @param tree       release with view_tree_free(), also on failure
 * @return as view_tree_build().
 */
enum ttd_status view_tree_begin(struct view_tree *tree, struct label_table *labels, bool is_across);
enum ttd_status view_tree_add(struct view_tree *tree, struct view *view,
                              const struct heap_rows *rows, enum heap_side side);

/** The part of a tree that is shown. */
struct view_tree_scope {
    /** How many levels are left; UINT64_MAX for all. */
    uint64_t levels;
    /** As view_tree_build(). */
    size_t limit;
    /** Nodes that have not changed are in the tree, too. */
    bool has_same;
};

/**
 * Puts nodes in order, those that have changed most first.
 *
 * @return as view_tree_build().
 */
enum ttd_status view_tree_end(struct view_tree *tree, const struct view_tree_scope *scope);

/** How many levels a tree has by the options. */
uint64_t view_tree_levels(const struct view_options *options);

/**
 * The node after another, depth first, of each only the first `limit` below it; begins with node
 * 0, which is not returned. VIEW_NO_NODE at the end.
 */
uint32_t view_tree_next(const struct view_tree *tree, uint32_t node, size_t limit);

/** What a node stands for. */
static inline const struct view_label *view_tree_label(const struct view_tree *tree,
                                                       const struct view_node *node)
{
    return &tree->labels->labels[node->label];
}

#endif
