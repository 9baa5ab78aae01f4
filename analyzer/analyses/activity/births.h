/* SPDX-License-Identifier: MIT */
/**
 * Births: when each live block was allocated, in wall time and in calls of its thread. A block
 * itself has only the position of its allocation, and positions are no measure of time.
 */
#ifndef ANALYZER_ANALYSES_ACTIVITY_BIRTHS_H
#define ANALYZER_ANALYSES_ACTIVITY_BIRTHS_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash_map.h"
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
    /** Number of calls of each thread. */
    uint64_t *thread_calls;
    size_t thread_count;
    size_t thread_capacity;
    struct hash_map by_thread;
    /** The thread that was looked up last, and its index, if there is any thread. */
    ttd_id last_thread;
    uint32_t last_index;
    /** By record of the block: see heap_effect.record. */
    struct birth *births;
    size_t capacity;
};

void births_init(struct births *births);
void births_free(struct births *births);

/** The general case of births_calls_of(). */
enum ttd_status births_find_thread(struct births *births, ttd_id thread);

/** Gives a block that was acquired its birth. A reallocation does not count as a call.
 * @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status births_add(struct births *births, const struct heap_effect *effect, uint32_t site);

/** Gives the block of a record its birth. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status births_put(struct births *births, uint32_t record, const struct birth *birth);

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
    if (status == TTD_OK)
        ++*calls;
    return status;
}

/** Returns the birth of the block of a record. */
static inline const struct birth *births_get(const struct births *births, uint32_t record)
{
    return &births->births[record];
}

/** Prefetches a birth that will be needed soon; there need not be one. Always inlined, because gcc
 * removes calls of a function that does nothing but prefetch. */
static inline __attribute__((always_inline)) void births_prefetch(const struct births *births,
                                                                  uint32_t record)
{
    if (record < births->capacity)
        __builtin_prefetch(&births->births[record], 1);
}

/** Sets `calls` to the number of calls of a thread between the allocation of its block and the
 * present call of the same thread; UINT64_MAX for a block that was reallocated.
 * @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static inline enum ttd_status births_calls_since(struct births *births, const struct birth *birth,
                                                 ttd_id thread, uint64_t *calls)
{
    uint64_t *thread_calls;
    *calls = UINT64_MAX;
    if (!birth->thread_call)
        return TTD_OK;
    enum ttd_status status = births_calls_of(births, thread, &thread_calls);
    if (status == TTD_OK)
        *calls = *thread_calls - birth->thread_call - 1;
    return status;
}

#endif
