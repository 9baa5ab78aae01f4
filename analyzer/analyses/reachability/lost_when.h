/* SPDX-License-Identifier: MIT */
/** Finding when lost blocks were lost: earlier snapshots give bounds. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_LOST_WHEN_H
#define ANALYZER_ANALYSES_REACHABILITY_LOST_WHEN_H

#include "heap/groups.h"
#include "reach/reach.h"

/** Limit on the earlier snapshots that are looked at. If there are more, this many are chosen,
 * spread evenly over the trace. */
#define HEAP_LOST_SNAPSHOTS 16

/** A lost block, and the bounds on the position at which it was lost. */
struct heap_lost_block {
    /** Set by the caller. */
    struct heap_block block;
    /** The block was lost after this position, */
    struct ttd_position after;
    /** and at this one at the latest. */
    struct ttd_position before;
    /** The release of the holder, the only block that pointed at this one at `after`: that release
     * lost it. Invalid if there was more than one holder or a root, or if the holder was not
     * released by `before`. */
    struct ttd_position holder_released;
    /** The event that acquired the holder; UINT64_MAX if there is not exactly one holder. */
    uint64_t holder;
};

/**
 * Narrows down when blocks were lost.
 *
 * @param snapshots  all snapshots of the trace
 * @param last       the snapshot in which the blocks are lost
 * @param blocks     blocks that are definitely or indirectly lost; all members but `block` are set
 * @return as heap_replay_to().
 */
enum ttd_status heap_lost_when_find(const struct heap_trace *trace,
                                    const struct heap_snapshots *snapshots,
                                    const struct ttd_snapshot *last, struct heap_lost_block *blocks,
                                    size_t count, struct ttd_error *error);

/** Returns the bounds of one block as a range, which can be merged with the bounds of others. */
struct heap_lost_range heap_lost_range_of(const struct heap_lost_block *lost);

#endif
