/* SPDX-License-Identifier: MIT */
/** Referrers: the words that point at a block, those that point at their blocks, and so on up to
 * the roots that hold it. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_REFERRERS_H
#define ANALYZER_ANALYSES_REACHABILITY_REFERRERS_H

#include "analyses/reachability/places.h"
#include "reach/reach.h"

/** Limit on the depth of the tree. */
#define HEAP_REFERRERS_DEPTH_MAX 4096

struct heap_referrers_options {
    struct ttd_position at;
    uint64_t address;
    /** Levels of the tree; at most HEAP_REFERRERS_DEPTH_MAX. */
    size_t depth;
    /** Words that are kept of those that point at the block; on each level below half as many, but
     * at least one. */
    size_t width;
};

enum heap_referrer_kind {
    /** A word of a block. */
    HEAP_REFERRER_BLOCK,
    /** A word outside of blocks. */
    HEAP_REFERRER_ROOT,
    /** Stands for `count` other words that point at the same block. */
    HEAP_REFERRER_MORE,
    /**
     * Stands for the `count` blocks that follow in a list on the way to a root: of one call site
     * and size, each pointing at the one before from the same place. `node` is the last of them.
     * Others that point at the blocks before it are not told.
     */
    HEAP_REFERRER_CHAIN
};

/** A word that points at a block. */
struct heap_referrer {
    enum heap_referrer_kind kind;
    /** 0 if it points at the block that was asked about, 1 if at one of depth 0, … */
    uint32_t depth;
    /** The block that has the word: a node of the graph. */
    uint32_t node;
    /** The region that has it. */
    uint32_t region;
    /** Offset of the word in its block or region. */
    uint64_t offset;
    /** Offset that it points to in the target; from UINT32_MAX on not exact. */
    uint64_t target_offset;
    /** Flags of the edge or root: a sum of graph_flag. */
    unsigned flags;
    /** Steps to the nearest root, which has 0 itself; GRAPH_NONE if none leads here. */
    uint32_t distance;
    /** The referrers of this block are not listed below it: they were listed before; or they are
     * below the depth limit. */
    bool is_repeated;
    bool is_too_deep;
    uint64_t count;
};

struct heap_referrers {
    struct heap_outcome outcome;
    struct heap_reach reach;
    struct heap_places places;
    /** The block that the address lies in; GRAPH_NONE if it is in none that was live at the
     * snapshot. */
    uint32_t target;
    /** Steps from a root to it, as above. */
    uint32_t distance;
    /** Words that point at it. */
    uint64_t total;
    /** From the target on, each followed by those that point at it; nearest to a root first. */
    struct heap_referrer *lines;
    size_t count;
    size_t capacity;
};

/**
 * @param referrers  set on TTD_OK; release with heap_referrers_free(). Without a snapshot,
 *                   reach.snapshot has number 0
 * @return as heap_reach_find().
 */
enum ttd_status heap_referrers_find(const struct heap_trace *trace,
                                    const struct heap_referrers_options *options,
                                    struct heap_referrers *referrers, struct ttd_error *error);
void heap_referrers_free(struct heap_referrers *referrers);

#endif
