/* SPDX-License-Identifier: MIT */
/** Which blocks a replay acquires that are nodes of a snapshot. Private to reach/. */
#ifndef ANALYZER_REACH_SURVIVORS_H
#define ANALYZER_REACH_SURVIVORS_H

#include "reach/nodes.h"

/** All zero when empty. */
struct reach_survivors {
    struct heap_nodes *nodes;
    /** By event modulo the number of bits, which is a power of two: whether it may have acquired a
     * node. */
    uint64_t *bits;
    uint64_t bit_count;
    /** The events of all nodes have bits of their own. */
    bool is_exact;
};

/**
 * Takes at most 4 bytes a node.
 *
 * @param nodes      outlive the survivors
 * @param survivors  release with reach_survivors_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status reach_survivors_init(struct reach_survivors *survivors, struct heap_nodes *nodes);
void reach_survivors_free(struct reach_survivors *survivors);

static inline bool reach_survivors_have(const struct reach_survivors *survivors,
                                        const struct heap_block *block)
{
    uint64_t bit = block->event & (survivors->bit_count - 1);
    if (!(survivors->bits[bit / 64] >> bit % 64 & 1))
        return false;
    return (survivors->is_exact && bit == block->event) ||
           heap_nodes_of(survivors->nodes, block) != HEAP_NO_NODE;
}

#endif
