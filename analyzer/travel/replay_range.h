/* SPDX-License-Identifier: MIT */
/**
 * Replaying only the events that concern a range of addresses. All events are read, but few are
 * applied: the table of live blocks stays small, which saves most of the time and memory of a
 * replay. Sums and counts of such a replay are meaningless and must come from elsewhere, such as
 * the keyframe that a trace with an index has.
 */
#ifndef ANALYZER_TRAVEL_REPLAY_RANGE_H
#define ANALYZER_TRAVEL_REPLAY_RANGE_H

#include "travel/heap_trace.h"

/** Addresses, both included. */
struct heap_address_range {
    uint64_t first;
    uint64_t last;
};

/** A route: the part of a trace that is replayed, and the addresses that matter. */
struct heap_range_route {
    struct heap_address_range range;
    /** The keyframe of trace->keyframes that the replay starts from; NULL for the start of the
     * trace. */
    const struct heap_keyframe *start;
    /** The replay stops before the event with this number, at which no call may be in flight;
     * UINT64_MAX for the end of the trace. */
    uint64_t end;
    /** Without `call`. TTD_END of its `effect` ends the replay, which then returns TTD_OK. */
    const struct heap_observer *observer;
    /** Called with the observer's context for each block that is live at `start` and covers an
     * address of the range; may change `user`. NULL if not needed. */
    enum ttd_status (*live)(void *context, struct heap_block *block);
};

/**
 * Replays a part of a trace. The observer gets every effect on a block that covers an address
 * of the range, exactly as in a full replay, and some effects on other blocks.
 *
 * @return TTD_OK; TTD_ERROR_CORRUPT if any of the part cannot be read, or does not fit the
 * keyframe: the caller then makes a full replay, which reports the damage; TTD_ERROR_NO_MEMORY,
 *         TTD_ERROR_IO, and what observer and hook return.
 */
enum ttd_status heap_replay_range(const struct heap_trace *trace,
                                  const struct heap_range_route *route, struct ttd_error *error);

#endif
