/* SPDX-License-Identifier: MIT */
/** Keyframes, summaries and sums, and the records of an index that hold them (spec, "States"). */
#ifndef ANALYZER_TRAVEL_STATES_H
#define ANALYZER_TRAVEL_STATES_H

#include "heap/replay.h"
#include "heap/tables.h"

/**
 * A state between two events: all that happened at `position` or before, and no call in flight.
 * Either all its blocks are listed, or it is a *summary*: then only those are that end before
 * `end`, and all others are summed up.
 */
struct heap_keyframe {
    struct ttd_position position;
    /** Counts of the events replayed up to here, and the number of the next event. */
    struct heap_counts counts;
    uint64_t next;
    /** Number of blocks that are listed. */
    uint64_t blocks;
    bool is_summary;
    /** Summary: how many sums it has, and up to where it serves. */
    uint64_t sums;
    struct ttd_position end;
    /** Number in the sidecar of the first chunk of its sums or, if it has none, of its list. */
    uint64_t chunk;
};

/** The record of a keyframe, and back; `chunk` is not in it. */
struct ttd_state heap_state_of_keyframe(const struct heap_keyframe *keyframe);
struct heap_keyframe heap_keyframe_of_state(const struct ttd_state *state);

/** The record of the peak, and back. */
struct ttd_state heap_state_of_peak(const struct heap_peak *peak);
struct heap_peak heap_peak_of_state(const struct ttd_state *state);

/** The record of a group of heap_tables.by[table]. */
struct ttd_sum heap_sum_of_group(size_t table, const struct heap_group *group);

/** Sets the group of heap_tables.by[sum->table]; false if there can be no such group. */
bool heap_group_of_sum(const struct ttd_sum *sum, struct heap_group *group);

#endif
