/* SPDX-License-Identifier: MIT */
/** The history of an address: every block that ever covered it, and the owner of an address at a
 * position. */
#ifndef ANALYZER_ANALYSES_STATE_HISTORY_H
#define ANALYZER_ANALYSES_STATE_HISTORY_H

#include "heap/call.h"
#include "heap/groups.h"
#include "heap/heap_live.h"
#include "travel/replay_to.h"

/* The owners of an address around a position: the block that covers it there, or the one that
 * covered it before, and the next one. */

/* Owners of an address: the blocks that cover it at one time or another. */

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
    /** How it was moved from there, if that is another address. */
    enum heap_move move;
    /** Number of the owner, from 1, in order of acquisition. */
    uint64_t ordinal;
    /** When the block was lost; NULL if no snapshot shows that it is lost. Set by
     * heap_lost_owners_find(). */
    const struct heap_lost_range *lost;
};

struct heap_owners_options {
    uint64_t address;
    struct ttd_position at;
};

struct heap_owners {
    struct heap_outcome outcome;
    struct heap_owners_options options;
    /** The owner that is live at the position. If several lie in each other, the one that was
     * acquired last. */
    bool has_live;
    struct heap_owner live;
    /** Without a live owner: of those released at the position or before, the one that was acquired
     * last. */
    bool has_before;
    struct heap_owner before;
    /** The first owner that was acquired after the position. */
    bool has_after;
    struct heap_owner after;
};

/**
 * Finds the owners, and the calls that released them, perhaps long after the position. Replays the
 * whole trace. With an index, starts at the keyframe before the position, and replays only events
 * that concern the address until the owners are known. The part before that keyframe is replayed
 * only if no owner is live at the position, and none was acquired since the keyframe.
 *
 * @param options  copied
 * @param owners   set on TTD_OK; owns nothing
 * @return as heap_replay_to().
 */
enum ttd_status heap_owners_find(const struct heap_trace *trace,
                                 const struct heap_owners_options *options,
                                 struct heap_owners *owners, struct ttd_error *error);

struct heap_history_options {
    /** Addresses, both included. */
    uint64_t first;
    uint64_t last;
    /** Number of owners to keep: the last ones. 0 counts them only. */
    size_t max;
};

struct heap_history {
    struct heap_outcome outcome;
    struct heap_history_options options;
    /** In order of acquisition: the last options.max of `total`. */
    struct heap_owner *owners;
    size_t count;
    size_t capacity;
    uint64_t total;
};

/**
 * Replays the whole trace, or with an index only the events of the addresses.
 *
 * @param options  copied
 * @param history  set on TTD_OK; release with heap_history_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_history_find(const struct heap_trace *trace,
                                  const struct heap_history_options *options,
                                  struct heap_history *history, struct ttd_error *error);
void heap_history_free(struct heap_history *history);

#endif
