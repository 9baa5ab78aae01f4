/* SPDX-License-Identifier: MIT */
/** The history of an address: every block that ever covered it. */
#ifndef ANALYZER_ANALYSES_STATE_HISTORY_H
#define ANALYZER_ANALYSES_STATE_HISTORY_H

#include "heap/call.h"
#include "heap/groups.h"
#include "heap/locate.h"
#include "travel/replay_to.h"

/** An owner: a block that covers, or covered, an address of the range. */
struct heap_owner {
    struct heap_block block;
    /**
     * The call that released the block; unknown while it is live. If the release is missing in the
     * trace, this is the call that acquired another block there: action Alloc, or action ReAlloc
     * with `overlapped`.
     */
    struct heap_call released;
    bool overlapped;
    /** Address of the block that this one was reallocated from; 0 if it was newly allocated. */
    uint64_t previous_address;
    /** Number of the owner, from 1, in order of acquisition. */
    uint64_t ordinal;
    /** When the block was lost; NULL if no snapshot shows that it is lost. Set by
     * heap_lost_owners_find(). */
    const struct heap_lost_range *lost;
};

struct heap_history_options {
    /** Addresses, both included. */
    uint64_t first;
    uint64_t last;
    /** Number of owners to keep: the last ones of all, or up to the one after `around`. */
    size_t max;
    /** Owners are taken up to the first one that was acquired after this position;
     * ttd_position_max() for all. */
    struct ttd_position around;
};

struct heap_history {
    struct heap_outcome outcome;
    struct heap_history_options options;
    /** In order of acquisition: the last options.max of `total`. */
    struct heap_owner *owners;
    size_t count;
    uint64_t total;
};

/**
 * Replays the whole trace, or, where there is an index, only what concerns the addresses.
 *
 * @param options  copied
 * @param history  set on TTD_OK; release with heap_history_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_history_find(const struct heap_trace *trace,
                                  const struct heap_history_options *options,
                                  struct heap_history *history, struct ttd_error *error);
void heap_history_free(struct heap_history *history);

/** Returns the owner that was live at a position, or NULL. */
const struct heap_owner *heap_history_live(const struct heap_history *history,
                                           struct ttd_position at);
/** Returns the owner that was released last at the position or before it, or NULL. */
const struct heap_owner *heap_history_before(const struct heap_history *history,
                                             struct ttd_position at);
/** Returns the owner that was acquired first after the position, or NULL. */
const struct heap_owner *heap_history_after(const struct heap_history *history,
                                            struct ttd_position at);

#endif
