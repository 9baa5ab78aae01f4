/* SPDX-License-Identifier: MIT */
/**
 * Growth that is no reallocation, inferred: a container of C++ that is full allocates a larger
 * block, copies, and releases the old one. That is taken to happen where a thread releases a block,
 * and one of its last REGROWTH_CALLS calls has allocated, later, a larger block with the same stack
 * as the released one's, from the same heap, which the thread has not released. The last such one
 * counts, and once. Nothing tells how much was copied: at most the old block's size.
 */
#ifndef ANALYZER_ANALYSES_ACTIVITY_REGROWTH_H
#define ANALYZER_ANALYSES_ACTIVITY_REGROWTH_H

#include "analyses/activity/moves.h"

/** Calls from the allocation to the release, both included. */
#define REGROWTH_CALLS 8

/** The last calls of all threads, some hundred bytes each. */
struct regrowth_finder {
    struct heap_move_table *regrown;
    enum heap_split split;
    /** Thread to an index in `recent`. */
    struct hash_map threads;
    struct regrowth_recent *recent;
    size_t count;
    size_t capacity;
};

/** @param found  what is found is added to it; not owned */
void regrowth_init(struct regrowth_finder *finder, struct heap_move_table *regrown,
                   enum heap_split split);
void regrowth_free(struct regrowth_finder *finder);

/** Takes in one effect of a replay; must see all. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status regrowth_see(struct regrowth_finder *finder, const struct heap_effect *effect);

#endif
