/* SPDX-License-Identifier: MIT */
/** Parts common to the files of the live API: its clients, and their events. */
#ifndef RECORDER_PRELOAD_HOOKS_LIVE_HOOKS_H
#define RECORDER_PRELOAD_HOOKS_LIVE_HOOKS_H

#include <ttdtrace/live.h>

#include "preload/threads/island.h"
#include "preload/threads/levels.h"

/** Whether the client was not closed. */
bool live_client_is_open(const struct ttd_live *live);

/** Begins a function of the API, in whose frame it is inlined, as a hook does. A suspended thread
 * is awake until live_leave(). NULL if the process does not record. */
static inline __attribute__((always_inline)) struct thread *live_enter(void)
{
    island_awake();
    struct thread *level = target_enter(0);
    if (level)
        target_phase(level, PHASE_RECORD);
    return level;
}

static inline void live_leave(struct thread *level)
{
    island_update(level);
    target_leave(level);
}

/** Appends an event. False, with a loss counted, if there is no room. */
static inline bool live_append(struct thread *level, const uint64_t client[2], uint32_t flags,
                               const struct event_data *data)
{
    if (!level->outer || level_is_ready(level))
        return thread_append_event(level, client, flags, data);
    level_count_lost(level);
    return false;
}

/** The calls about custom heaps (heap.c), and about dumps (live.c). */
extern const struct ttd_live_heap_functions live_heap_functions;
extern const struct ttd_live_dump_functions live_dump_functions;

#endif
