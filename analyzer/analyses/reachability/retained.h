/* SPDX-License-Identifier: MIT */
/** Retained sizes: the blocks and bytes that would become unreachable without a block, without all
 * blocks of a stack, class or label, or without a root. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_RETAINED_H
#define ANALYZER_ANALYSES_REACHABILITY_RETAINED_H

#include "analyses/reachability/places.h"
#include "graph/dominators.h"

/*
 * Held memory: the roots of a snapshot in groups that a person knows: variables, frames of stacks,
 * the registers of a thread and mappings; and the dominator tree of the blocks below these groups.
 * The analyses `roots` and `retained` share it.
 */

/** The roots in one variable, in one frame of a stack or, outside of named places, in one
 * region. */
struct heap_root_group {
    /** The place of the first root of the group. */
    struct heap_place place;
    /** Number of roots. */
    uint64_t words;
};

struct heap_held {
    struct heap_outcome outcome;
    /** If reach.snapshot.number is 0 there is no snapshot, and everything else is empty. */
    struct heap_reach reach;
    struct heap_places places;
    struct heap_root_group *groups;
    uint32_t group_count;
    /** By root of the graph: the index of its group. */
    uint32_t *root_groups;
    /** The dominator tree. Its nodes are the nodes of the graph, then the groups (they dominate the
     * blocks), then the top. */
    struct graph_dominators dominators;
    /** All blocks, and their bytes. */
    uint64_t blocks;
    uint64_t bytes;
    /** Blocks that no root leads to, and their bytes. */
    uint64_t unheld_blocks;
    uint64_t unheld_bytes;
};

/**
 * Builds the graph of the newest snapshot with references at or before a position, and its
 * dominator tree.
 *
 * @param held  set on TTD_OK; release with heap_held_free()
 * @return as heap_reach_find().
 */
enum ttd_status heap_held_find(const struct heap_trace *trace, struct ttd_position position,
                               struct heap_held *held, struct ttd_error *error);
/**
 * The same from the blocks of a snapshot, without another replay to it.
 *
 * @param reach  outcome, snapshot and nodes of it; taken over, and then all zero
 */
enum ttd_status heap_held_build(const struct heap_trace *trace, struct heap_reach *reach,
                                struct heap_held *held, struct ttd_error *error);
void heap_held_free(struct heap_held *held);

/** Returns the sizes of the blocks by node, to be released with heap_held_free_sizes(); NULL if
 * memory is exhausted. */
uint64_t *heap_held_sizes(const struct heap_held *held);
void heap_held_free_sizes(const struct heap_held *held, uint64_t *sizes);

/** Returns the node of the dominator tree that stands for a group of roots. */
static inline uint32_t heap_held_group_node(const struct heap_held *held, uint32_t group)
{
    return held->reach.graph.node_count + group;
}

/** Returns the node at the top of the dominator tree; it stands for all roots. */
static inline uint32_t heap_held_top(const struct heap_held *held)
{
    return held->dominators.count - 1;
}

/** Limit on the depth of a tree. */
#define HEAP_RETAINED_DEPTH_MAX 4096

/** Limit on the groups and roots that are reported. A pass over the graph serves only some of them,
 * so many would take long. */
#define HEAP_RETAINED_GROUPS_MAX 4096

enum heap_retained_by {
    HEAP_RETAINED_BY_BLOCK,
    HEAP_RETAINED_BY_STACK,
    HEAP_RETAINED_BY_CLASS,
    HEAP_RETAINED_BY_ROOT,
    HEAP_RETAINED_BY_LABEL
};

/** Labels that the caller gives to blocks, such as the function that allocated. `find` sets the
 * number of a block's label, or fails with a status that the query then returns. */
struct heap_retained_labels {
    void *context;
    enum ttd_status (*find)(void *context, const struct heap_block *block, uint32_t *label);
};

struct heap_retained_options {
    struct ttd_position at;
    enum heap_retained_by by;
    /** For HEAP_RETAINED_BY_LABEL. */
    struct heap_retained_labels labels;
    /** Limit on the records of a list, at least 1; groups and roots are limited to
     * HEAP_RETAINED_GROUPS_MAX as well. In a tree: limit on the branches of the top; each further
     * level has half as many, but at least one. SIZE_MAX for no limit. */
    size_t limit;
    /** Number of levels of a tree, at most HEAP_RETAINED_DEPTH_MAX; 0 for a list. */
    size_t depth;
};

/** A retainer: a block, a group of blocks, or a root group. */
struct heap_retainer {
    /** By block and in a tree: the node of the dominator tree; otherwise GRAPH_NONE. */
    uint32_t node;
    /** By stack. */
    ttd_id stack;
    /** By label: the number of the label. By class: the index in held.reach.classes plus 1; 0 for
     * all blocks without a class. By root and in a tree: the index of the root group plus 1; 0 for
     * a block. */
    uint32_t index;
    /** In a tree: the level, 0 for the branches of the top. */
    uint32_t depth;
    /** Private: the number of a group of blocks before records are sorted. */
    uint32_t group;
    /** The blocks of the retainer itself. By root: the blocks that the root points at; others may
     * point at them too. */
    uint64_t blocks;
    uint64_t bytes;
    /** The blocks that it retains, including its own. */
    uint64_t retained_blocks;
    uint64_t retained_bytes;
    /** By root: the blocks that the root leads to; others may lead to them too. */
    uint64_t reachable_blocks;
    uint64_t reachable_bytes;
    /** In a tree: this record stands for so many more branches of the same node; 0 for a branch. */
    uint64_t others;
};

struct heap_retained {
    struct heap_outcome outcome;
    struct heap_held held;
    /** A list has the largest first; a tree is depth first. */
    struct heap_retainer *records;
    size_t count;
    size_t capacity;
    /** Number of all retainers; `count` of them are kept. */
    uint64_t total;
};

/**
 * @param retained  set on TTD_OK; release with heap_retained_free()
 * @return as heap_held_find(), or the status of `labels`.
 */
enum ttd_status heap_retained_find(const struct heap_trace *trace,
                                   const struct heap_retained_options *options,
                                   struct heap_retained *retained, struct ttd_error *error);
/** Lists the contents of `retained->held` by other options; an earlier list is dropped.
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, or the status of `labels`. */
enum ttd_status heap_retained_rank(struct heap_retained *retained,
                                   const struct heap_retained_options *options);
void heap_retained_free(struct heap_retained *retained);

#endif
