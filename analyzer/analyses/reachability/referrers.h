/* SPDX-License-Identifier: MIT */
/** Referrers: a tree of the words that point at a block, of the words that point at the blocks of
 * those, and so on up to the roots. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_REFERRERS_H
#define ANALYZER_ANALYSES_REACHABILITY_REFERRERS_H

#include "analyses/reachability/places.h"
#include "analyses/state/history.h"
#include "reach/reach.h"
#include "travel/heap_trace.h"

/* The block that had each of some words of memory last, and was released. */

/** A word, and the block that had it; `released` of that is unknown if none had it. */
struct heap_earlier {
    uint64_t address;
    struct heap_owner owner;
};

/**
 * Replays the trace up to a position, and finds the block that was released last of those that had
 * each word.
 *
 * @param words  their addresses are set; sorted by address, and their owners set
 * @return as heap_replay_to(); TTD_OK for no words.
 */
enum ttd_status heap_earlier_find(const struct heap_trace *trace, struct ttd_position until,
                                  struct heap_earlier *words, size_t count,
                                  struct ttd_error *error);

/** Limit on the depth of the tree. */
#define HEAP_REFERRERS_DEPTH_MAX 4096

struct heap_referrers_options {
    struct ttd_position at;
    uint64_t address;
    /** Number of levels of the tree, at most HEAP_REFERRERS_DEPTH_MAX. */
    size_t depth;
    /** Limit on the words that are listed below one block: `width` on the first level, half as many
     * on each further level, but at least one. */
    size_t width;
};

enum heap_referrer_kind {
    /** A word in a block. */
    HEAP_REFERRER_BLOCK,
    /** A word outside of blocks. */
    HEAP_REFERRER_ROOT,
    /** Stands for `count` more words that point at the same block. */
    HEAP_REFERRER_MORE,
    /**
     * Stands for the next `count` blocks of a linked list on the way to a root: blocks of one call
     * site and size, each pointing at the one before from the same offset. `node` is the last of
     * them. Other words that point at the blocks of the list are left out.
     */
    HEAP_REFERRER_CHAIN,
    /** A word of released memory that has an address in the target, and does not hold it: nobody
     * has written it since. */
    HEAP_REFERRER_RELIC
};

/** A line of the tree: a word that points at a block, its target. */
struct heap_referrer {
    enum heap_referrer_kind kind;
    /** Level in the tree: 0 if the target is the block that was asked about, 1 if it is a block of
     * level 0, and so on. */
    uint32_t depth;
    /** HEAP_REFERRER_BLOCK, HEAP_REFERRER_CHAIN: the node of the block that contains the word. */
    uint32_t node;
    /** HEAP_REFERRER_ROOT, HEAP_REFERRER_RELIC: the number of the region that contains the word. */
    uint32_t region;
    /** Offset of the word in its block or region. */
    uint64_t offset;
    /** Offset in the target that the word points to; from UINT32_MAX on not exact. */
    uint64_t target_offset;
    /** Flags of the edge or root: a sum of enum graph_flag. Of a chain, GRAPH_STALE if a word on
     * the way is. */
    unsigned flags;
    /** Number of pointers from the nearest root to the block of the word; 0 for a root, GRAPH_NONE
     * if no root leads there. */
    uint32_t distance;
    /** The referrers of the word's block are listed elsewhere, above this line. */
    bool is_repeated;
    /** The referrers of the word's block are below the depth limit. */
    bool is_too_deep;
    /** HEAP_REFERRER_MORE, HEAP_REFERRER_CHAIN. */
    uint64_t count;
    /** Of a word in released memory, or one that is possibly stale: the block that had it before;
     * NULL if there was none. */
    const struct heap_owner *earlier;
};

struct heap_referrers {
    struct heap_outcome outcome;
    struct heap_reach reach;
    struct heap_places places;
    /** The node of the block that contains the address; GRAPH_NONE if no block that was live at the
     * snapshot does. */
    uint32_t target;
    /** Number of pointers from the nearest root to the target; GRAPH_NONE if it is lost. */
    uint32_t distance;
    /** Number of words that point at the target, without relics. */
    uint64_t total;
    /** Words of released memory that have an address in the target: at most `width` are listed. */
    uint64_t relic_count;
    /** Blocks that had words before. */
    struct heap_earlier *earlier;
    size_t earlier_count;
    /** The tree, depth first. Words that point at the same block are in order of distance. Then the
     * relics. */
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

/** The address of the word of a line; TTD_UNKNOWN for a register, and where several words are
 * meant, or none. */
uint64_t heap_referrer_address(const struct heap_referrers *referrers,
                               const struct heap_referrer *referrer);

#endif
