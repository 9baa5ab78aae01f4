/* SPDX-License-Identifier: MIT */
/** Keyframes, summaries and sums, and the records of an index that hold them (spec, "States"). */
#ifndef ANALYZER_TRAVEL_STATE_RECORDS_H
#define ANALYZER_TRAVEL_STATE_RECORDS_H

#include "heap/replay.h"
#include "heap/tables.h"

/**
 * A stored state of the heap, from which a replay can start. It stands between two events: every
 * effect at `position` or before has been applied, and no call is in flight. There are two forms. A
 * keyframe lists all live blocks. A *summary* serves positions before `end` only: it lists the live
 * blocks that are released before `end`, and has sums over all others, so it is much faster to
 * read.
 */
struct heap_keyframe {
    struct ttd_position position;
    /** Counts of the events replayed up to here, and the number of the next event. */
    struct heap_counts counts;
    uint64_t next;
    /** Number of blocks listed. */
    uint64_t blocks;
    bool is_summary;
    /** If it is a summary: the number of its sums, and the first position that it does not serve.
     */
    uint64_t sums;
    struct ttd_position end;
    /** Number, in the sidecar, of the first chunk of its sums; without sums, of its list. */
    uint64_t chunk;
};

/** Converts between a keyframe and its record in the index. The record has no `chunk`. */
struct ttd_state heap_state_of_keyframe(const struct heap_keyframe *keyframe);
struct heap_keyframe heap_keyframe_of_state(const struct ttd_state *state);

/** Converts between the peak and its record in the index. */
struct ttd_state heap_state_of_peak(const struct heap_peak *peak);
struct heap_peak heap_peak_of_state(const struct ttd_state *state);

/** Returns the record of a group of heap_tables.by[table]. */
struct ttd_sum heap_sum_of_group(size_t table, const struct heap_group *group);

/** Sets `group` to the group of heap_tables.by[sum->table] that a record describes. Returns false
 * if no group can have these values. */
bool heap_group_of_sum(const struct ttd_sum *sum, struct heap_group *group);

#endif
