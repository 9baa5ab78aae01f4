/* SPDX-License-Identifier: MIT */
/**
 * Replaying only the events that concern a range of addresses. All events are read, but few are
 * applied: the table of live blocks stays small, which saves most of the time and memory of a
 * replay. Sums and counts of such a replay are meaningless and must come from elsewhere, such as
 * the keyframe that a trace with an index has.
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
 * Replays a trace from its start to its end. The observer is told of every effect on a block that
 * covers an address of the range, exactly as a full replay would tell it, and of some effects on
 * other blocks.
 *
 * @param observer  without `call`
 * @return TTD_OK; TTD_ERROR_CORRUPT if any part of the trace cannot be read: the caller then makes
 * a full replay, which reports the damage; TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and what observer and
 * hook return.
 */
enum ttd_status heap_replay_range(const struct heap_trace *trace, struct heap_address_range range,
                                  const struct heap_observer *observer, struct ttd_error *error);

#endif
