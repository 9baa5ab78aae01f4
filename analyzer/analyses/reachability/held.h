/* SPDX-License-Identifier: MIT */
/** The roots of a snapshot, in groups that a person knows: variables, stacks, registers of a
 * thread, mappings; and the dominator tree below them. `roots` and `retained` share it. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_HELD_H
#define ANALYZER_ANALYSES_REACHABILITY_HELD_H

#include "analyses/reachability/places.h"
#include "graph/dominators.h"

/** A variable, or else a region: the words in it that hold blocks. */
struct heap_root_group {
    /** The first of its words. */
    struct heap_place place;
    uint64_t words;
};

struct heap_held {
    struct heap_outcome outcome;
    /** Snapshot number 0: there is none, and all else is empty. */
    struct heap_reach reach;
    struct heap_places places;
    struct heap_root_group *groups;
    uint32_t group_count;
    /** By root of the graph: its group. */
    uint32_t *root_groups;
    /** Above the nodes of the graph are the groups. */
    struct graph_dominators dominators;
    /** All blocks, and their bytes. */
    uint64_t blocks;
    uint64_t bytes;
    /** The blocks that no root leads to. */
    uint64_t unheld_blocks;
    uint64_t unheld_bytes;
};

/**
 * Builds the graph of the newest snapshot at a position or before, and its dominator tree.
 *
 * @param held  set on TTD_OK; release with heap_held_free()
 * @return as heap_reach_find().
 */
enum ttd_status heap_held_find(const struct heap_trace *trace, struct ttd_position at,
                               struct heap_held *held, struct ttd_error *error);
void heap_held_free(struct heap_held *held);

/** Lists the sizes of the blocks, by node. @return NULL without memory; release with free(). */
uint64_t *heap_held_sizes(const struct heap_held *held);

/** The node of the tree that stands for a group of roots, and for all of them. */
static inline uint32_t heap_held_group_node(const struct heap_held *held, uint32_t group)
{
    return held->reach.graph.node_count + group;
}

static inline uint32_t heap_held_top(const struct heap_held *held)
{
    return held->dominators.count - 1;
}

#endif
