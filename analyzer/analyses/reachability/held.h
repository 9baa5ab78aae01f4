/* SPDX-License-Identifier: MIT */
/**
 * Held memory: the roots of a snapshot in groups that a person knows, which are variables, frames
 * of stacks, the registers of a thread and mappings; and the dominator tree of the blocks below
 * these groups. The analyses `roots` and `retained` share it.
 */
#ifndef ANALYZER_ANALYSES_REACHABILITY_HELD_H
#define ANALYZER_ANALYSES_REACHABILITY_HELD_H

#include "analyses/reachability/places.h"
#include "graph/dominators.h"

/** The roots in one variable, in one frame of a stack or, outside of what has a name, in one
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
    /** The dominator tree. Its nodes are the nodes of the graph, then the groups, which dominate
     * them, then the top. */
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
 * The same from the blocks of a snapshot, which need not be replayed to again.
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

/** Returns the node at the top of the dominator tree, which stands for all roots. */
static inline uint32_t heap_held_top(const struct heap_held *held)
{
    return held->dominators.count - 1;
}

#endif
