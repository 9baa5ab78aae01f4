/* SPDX-License-Identifier: MIT */
/**
 * Replaying only what concerns a range of addresses. All events are read, but few are applied: the
 * table of live blocks stays small, which saves most of the time and memory of a replay. Sums and
 * counts of such a replay mean nothing; they come from a keyframe, so it is for traces that have an
 * index.
 */
#ifndef ANALYZER_TRAVEL_REPLAY_RANGE_H
#define ANALYZER_TRAVEL_REPLAY_RANGE_H

#include "travel/trace.h"

/** Addresses, both included. */
struct heap_address_range {
    uint64_t first;
    uint64_t last;
};

/**
 * Replays a trace from its beginning to its end. The observer is told of every effect on a block
 * that has an address of the range, as a replay of everything would tell it, and of some others.
 *
 * @param observer  without `call`
 * @return TTD_OK; TTD_ERROR_CORRUPT if anything cannot be read, after which a replay of everything
 *         says what can; TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and what observer and hook return.
 */
enum ttd_status heap_replay_range(const struct heap_trace *trace, struct heap_address_range range,
                                  const struct heap_observer *observer, struct ttd_error *error);

#endif
