/* SPDX-License-Identifier: MIT */
/**
 * Births: when each live block was allocated, in wall time and in calls of its thread. A block
 * itself has only the position of its allocation, and positions are no measure of time.
 */
#ifndef ANALYZER_ANALYSES_ACTIVITY_BIRTHS_H
#define ANALYZER_ANALYSES_ACTIVITY_BIRTHS_H

#include "base/map.h"
#include "heap/replay.h"

struct birth {
    uint64_t wall_time;
    /** Number of calls of the thread up to the one that allocated; 0 if by reallocation. */
    uint64_t thread_call;
    /** The caller's number of its call site. */
    uint32_t site;
};

/** Memory grows with the blocks that are live at once, not with the length of the trace. */
struct births {
    /** Largest wall time of the calls so far. */
    uint64_t wall_time;
    /** Number of calls of each thread. */
    uint64_t *thread_calls;
    size_t thread_count;
    size_t thread_capacity;
    struct hash_map by_thread;
    /** The thread that was looked up last, and its index, if there is any thread. */
    ttd_id last_thread;
    uint32_t last_index;
    /** `user` of a block is the index of its birth plus 1. */
    struct birth *births;
    size_t count;
    size_t capacity;
    /** Elements of `births` whose blocks have ended. */
    uint32_t *unused;
    size_t unused_count;
    size_t unused_capacity;
};

void births_init(struct births *births);
void births_free(struct births *births);

/* All return TTD_OK or TTD_ERROR_NO_MEMORY. */

/** Counts a call, before its effects. */
enum ttd_status births_see_call(struct births *births, const struct ttd_event *event);

/** Gives a block that was acquired its birth. A reallocation does not count as a call. */
enum ttd_status births_add(struct births *births, const struct heap_effect *effect, uint32_t site);

/** Releases the birth of a block that has ended. */
enum ttd_status births_remove(struct births *births, const struct heap_block *block);

/** Sets `calls` to the number of calls of the block's thread between its allocation and the present
 * call, which is of the same thread; UINT64_MAX for a block that was reallocated. */
enum ttd_status births_calls_since(struct births *births, const struct heap_block *block,
                                   uint64_t *calls);

/** Returns the number of the call site of a block. */
static inline uint32_t births_site(const struct births *births, const struct heap_block *block)
{
    return births->births[block->user - 1].site;
}

/** Returns the age of a block in nanoseconds. */
static inline uint64_t births_age(const struct births *births, const struct heap_block *block)
{
    return births->wall_time - births->births[block->user - 1].wall_time;
}

#endif
