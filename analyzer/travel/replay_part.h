/* SPDX-License-Identifier: MIT */
/**
 * Replaying only the events that concern some memory. All events are read, but few are applied: the
 * table of live blocks stays small: most of a replay's time and memory is saved. Sums and counts of
 * such a replay are meaningless and must come from elsewhere, such as the keyframe that a trace
 * with an index has.
 */
#ifndef ANALYZER_TRAVEL_REPLAY_PART_H
#define ANALYZER_TRAVEL_REPLAY_PART_H

#include "travel/heap_trace.h"

/** Addresses, both included. */
struct heap_address_range {
    uint64_t first;
    uint64_t last;
};

/** The memory that a replay is for. */
struct heap_watched_memory {
    void *context;
    /** Whether any of the memory is among `size` bytes from `address` on; at least 1. True does no
     * harm where none is. */
    bool (*meets)(void *context, uint64_t address, uint64_t size);
};

/** The memory of a range. */
struct heap_watched_memory heap_watch_range(struct heap_address_range *range);

/** A route: the part of a trace that is replayed, and the memory that matters. */
struct heap_part_route {
    struct heap_watched_memory memory;
    /** The keyframe of trace->keyframes that the replay starts from; NULL for the start of the
     * trace. */
    const struct heap_keyframe *start;
    /** The replay stops before the event with this number; no call may be in flight there;
     * UINT64_MAX for the end of the trace. */
    uint64_t end;
    /** Every effect at this position or before is applied, and none behind. */
    struct ttd_position to;
    /** Damage is passed over, as a full replay does; else the replay fails. An earlier pass has
     * reported it. */
    bool tolerates_damage;
    /** Without `call`. TTD_END of its `effect` ends the replay with TTD_OK. */
    const struct heap_observer *observer;
    /** Called with the observer's context for each block that is live at `start` and has an address
     * of the memory; may change `user`. NULL if not needed. */
    enum ttd_status (*live)(void *context, struct heap_block *block);
};

/**
 * Replays a part of a trace. The observer gets every effect on a block that has an address of the
 * memory, exactly as in a full replay, and some effects on other blocks. The block that a ReAlloc
 * had before (heap_effect.previous) is known only if it had some of the memory, too.
 *
 * @return TTD_OK; TTD_ERROR_CORRUPT if any of the part cannot be read, or does not fit the
 * keyframe: the caller then makes a full replay; this reports the damage; TTD_ERROR_NO_MEMORY,
 *         TTD_ERROR_IO, and what observer and hook return.
 */
enum ttd_status heap_replay_part(const struct heap_trace *trace,
                                 const struct heap_part_route *route, struct ttd_error *error);

#endif
