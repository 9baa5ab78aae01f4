/* SPDX-License-Identifier: MIT */
/** When blocks were lost, as earlier snapshots bound it. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_LOST_WHEN_H
#define ANALYZER_ANALYSES_REACHABILITY_LOST_WHEN_H

#include "heap/groups.h"
#include "reach/reach.h"

/** Earlier snapshots that are looked at, at most: of more, as many are taken from all over. */
#define HEAP_LOST_SNAPSHOTS 16

struct heap_lost_block {
    /** Set by the caller. */
    struct heap_block block;
    /** It was lost after the first of these positions, and at the second at the latest. */
    struct ttd_position after;
    struct ttd_position before;
    /** When the only block that pointed at it at `after` was released; invalid if several words
     * did, or a root, or if that block was not released by `before`. */
    struct ttd_position holder_released;
    /** The event that acquired that block; UINT64_MAX for none. */
    uint64_t holder;
};

/**
 * Narrows down when blocks were lost.
 *
 * @param snapshots  of the trace
 * @param last       the one that tells that the blocks are lost
 * @param blocks     lost, definitely or indirectly
 * @return as heap_replay_to().
 */
enum ttd_status heap_lost_when_find(const struct heap_trace *trace,
                                    const struct heap_snapshots *snapshots,
                                    const struct ttd_snapshot *last, struct heap_lost_block *blocks,
                                    size_t count, struct ttd_error *error);

/** The range of one block. */
struct heap_lost_range heap_lost_range_of(const struct heap_lost_block *lost);

#endif
