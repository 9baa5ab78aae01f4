/* SPDX-License-Identifier: MIT */
/**
 * Growth without realloc, inferred. A C++ container that is full allocates a larger block, copies
 * its elements, and releases the old block. The analysis assumes such a growth where a thread
 * releases a block, and one of its last REGROWTH_CALLS calls has allocated a larger block, later,
 * with the same stack and from the same heap, which the thread has not released. The newest such
 * allocation is the successor, and an allocation is the successor of one block only. The number of
 * bytes copied is unknown; the size of the old block is an upper limit.
 */
#ifndef ANALYZER_ANALYSES_ACTIVITY_REGROWTH_H
#define ANALYZER_ANALYSES_ACTIVITY_REGROWTH_H

#include "analyses/activity/moves.h"

/* Growth: the pattern in the sizes of a call site's reallocations. */

/** Adds a reallocation from `before` to `after` bytes to the group's statistics. */
void heap_growth_add(struct heap_move_group *group, uint64_t before, uint64_t after);

/** Adds the statistics of `group` to `sum`. */
void heap_growth_merge(struct heap_move_group *sum, const struct heap_move_group *group);

/** Number of calls of a thread from the allocation to the release, both included. */
#define REGROWTH_CALLS 8

/** The state of the analysis: the last calls of each thread, some hundred bytes for each. */
struct regrowth_finder {
    struct heap_move_table *regrown;
    enum heap_split split;
    const struct heap_islands *islands;
    /** Maps a thread to an index in `recent`. */
    struct hash_map threads;
    /** The thread that was looked up last, and its index, if there is any thread. */
    ttd_id last_thread;
    uint32_t last_index;
    struct regrowth_recent *recent;
    size_t count;
    size_t capacity;
};

/** @param regrown  borrowed; inferred growths are added to it
 * @param islands   borrowed; only growths into blocks that were allocated in them; NULL for all */
void regrowth_init(struct regrowth_finder *finder, struct heap_move_table *regrown,
                   enum heap_split split, const struct heap_islands *islands);
void regrowth_free(struct regrowth_finder *finder);

/** Handles an effect of a replay; must be called for every one. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status regrowth_see(struct regrowth_finder *finder, const struct heap_effect *effect);

#endif
