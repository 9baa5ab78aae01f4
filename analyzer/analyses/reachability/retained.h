/* SPDX-License-Identifier: MIT */
/** Retained sizes: the blocks and bytes that would become free with a block, with all blocks of a
 * stack, class or label, or with a root. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_RETAINED_H
#define ANALYZER_ANALYSES_REACHABILITY_RETAINED_H

#include "analyses/reachability/held.h"

/** Limit on the depth of a tree. */
#define HEAP_RETAINED_DEPTH_MAX 4096

/** Limit on the groups and roots that are reported: each needs a share of a pass over the graph. */
#define HEAP_RETAINED_GROUPS_MAX 4096

enum heap_retained_by {
    HEAP_RETAINED_BY_BLOCK,
    HEAP_RETAINED_BY_STACK,
    HEAP_RETAINED_BY_CLASS,
    HEAP_RETAINED_BY_ROOT,
    HEAP_RETAINED_BY_LABEL
};

/** Labels of blocks, which the caller knows. `find` sets the number of a block's label, or fails
 * with a status that the query then returns. */
struct heap_retained_labels {
    void *context;
    enum ttd_status (*find)(void *context, const struct heap_block *block, uint32_t *label);
};

struct heap_retained_options {
    struct ttd_position at;
    enum heap_retained_by by;
    /** By label. */
    struct heap_retained_labels labels;
    /** Records that are kept, at least 1; in a tree branches of the top, and on each level below
     * half as many, but one at least; SIZE_MAX for all, of groups and
     * roots at most HEAP_RETAINED_GROUPS_MAX. */
    size_t limit;
    /** A tree of `depth` levels, at most HEAP_RETAINED_DEPTH_MAX; 0 for a list. */
    size_t depth;
};

struct heap_retainer {
    /** By block and in a tree: the node of the dominator tree; otherwise GRAPH_NONE. */
    uint32_t node;
    /** By stack. */
    ttd_id stack;
    /** By label: its number. By class: 1 more than its index in held.reach.classes; 0 for all
     * blocks without one. By root and in a tree: 1 more than the index of the group. */
    uint32_t index;
    /** In a tree: 0 for what the top holds itself. */
    uint32_t depth;
    /** Private: of a group of blocks, the number of the group. */
    uint32_t group;
    /** Its own blocks; by root those that it points at, which need not be its alone. */
    uint64_t blocks;
    uint64_t bytes;
    /** The blocks that it retains, its own included. */
    uint64_t retained_blocks;
    uint64_t retained_bytes;
    /** By root: what its words lead to, perhaps not they alone. */
    uint64_t reachable_blocks;
    uint64_t reachable_bytes;
    /** In a tree: stands for so many other branches; 0 for a branch. */
    uint64_t others;
};

struct heap_retained {
    struct heap_outcome outcome;
    struct heap_held held;
    /** Largest first; a tree is depth first. */
    struct heap_retainer *items;
    size_t count;
    size_t capacity;
    /** Number of all retainers; `count` of them are kept. */
    uint64_t total;
};

/**
 * @param retained  set on TTD_OK; release with heap_retained_free()
 * @return as heap_held_find(), and what `labels` return.
 */
enum ttd_status heap_retained_find(const struct heap_trace *trace,
                                   const struct heap_retained_options *options,
                                   struct heap_retained *retained, struct ttd_error *error);
void heap_retained_free(struct heap_retained *retained);

#endif
