/* SPDX-License-Identifier: MIT */
/** Every block that ever covered an address. */
#ifndef ANALYZER_ANALYSES_STATE_HISTORY_H
#define ANALYZER_ANALYSES_STATE_HISTORY_H

#include "heap/call.h"
#include "heap/groups.h"
#include "heap/locate.h"
#include "travel/replay_to.h"

/** A block that has, or had, an address of the range. */
struct heap_owner {
    struct heap_block block;
    /**
     * The call that released it; unknown while it is live. An Alloc or ReAlloc of another block
     * (action Alloc, or ReAlloc with `overlapped`) means that its release is missing in the trace.
     */
    struct heap_call released;
    bool overlapped;
    /** Reallocated from there; 0 if newly allocated. */
    uint64_t previous_address;
    /** Counted from 1 in order of acquisition. */
    uint64_t ordinal;
    /** When it was lost; NULL if no snapshot tells that it is. Set by heap_lost_owners_find(). */
    const struct heap_lost_range *lost;
};

struct heap_history_options {
    /** Addresses, both included. */
    uint64_t first;
    uint64_t last;
    /** Number of owners to keep: the last ones. */
    size_t max;
    /** The first owner acquired after this is the last that is kept; ttd_position_max() for all. */
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

/** The owner that was live at a position, or NULL. */
const struct heap_owner *heap_history_live(const struct heap_history *history,
                                           struct ttd_position at);
/** The owner that was released last at the position or before it, or NULL. */
const struct heap_owner *heap_history_before(const struct heap_history *history,
                                             struct ttd_position at);
/** The owner that was acquired first after the position, or NULL. */
const struct heap_owner *heap_history_after(const struct heap_history *history,
                                            struct ttd_position at);

#endif
