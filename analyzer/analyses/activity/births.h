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
    /** The caller's number of its call site; of a birth that is not in use, the number of the next
     * such one, or 0. */
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
    /** Number of the first element of `births` whose block has ended, from 1; 0 if there is none.
     */
    uint32_t unused;
};

void births_init(struct births *births);
void births_free(struct births *births);

/** The general case of births_calls_of(). */
enum ttd_status births_find_thread(struct births *births, ttd_id thread);

/** Sets `calls` to the number of calls of a thread. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static inline enum ttd_status births_calls_of(struct births *births, ttd_id thread,
                                              uint64_t **calls)
{
    enum ttd_status status = TTD_OK;
    if (!births->thread_count || thread != births->last_thread)
        status = births_find_thread(births, thread);
    if (status == TTD_OK)
        *calls = &births->thread_calls[births->last_index];
    return status;
}

/** Counts a call, before its effects. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static inline enum ttd_status births_see_call(struct births *births, const struct ttd_event *event)
{
    uint64_t *calls;
    enum ttd_status status = births_calls_of(births, event->thread, &calls);
    if (event->wall_time > births->wall_time)
        births->wall_time = event->wall_time;
    if (status == TTD_OK)
        ++*calls;
    return status;
}

/** Gives a block that was acquired its birth. A reallocation does not count as a call.
 * @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status births_add(struct births *births, const struct heap_effect *effect, uint32_t site);

/** Releases the birth of a block that has ended. */
static inline void births_remove(struct births *births, const struct heap_block *block)
{
    births->births[block->user - 1].site = births->unused;
    births->unused = block->user;
}

/** Sets `calls` to the number of calls of the block's thread between its allocation and the present
 * call, which is of the same thread; UINT64_MAX for a block that was reallocated.
 * @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static inline enum ttd_status births_calls_since(struct births *births,
                                                 const struct heap_block *block, uint64_t *calls)
{
    uint64_t allocation = births->births[block->user - 1].thread_call;
    uint64_t *thread_calls;
    *calls = UINT64_MAX;
    if (!allocation)
        return TTD_OK;
    enum ttd_status status = births_calls_of(births, block->thread, &thread_calls);
    if (status == TTD_OK)
        *calls = *thread_calls - allocation - 1;
    return status;
}

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
