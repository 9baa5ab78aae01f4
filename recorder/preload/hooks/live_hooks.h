/* SPDX-License-Identifier: MIT */
/** Parts common to the files of the live API: its clients, and their events. */
#ifndef RECORDER_PRELOAD_HOOKS_LIVE_HOOKS_H
#define RECORDER_PRELOAD_HOOKS_LIVE_HOOKS_H

#include <ttdtrace/live.h>

#include "preload/threads/island.h"
#include "preload/threads/levels.h"

/** The clients of the process. The library that is attached to a process has them, and a table of
 * functions, in memory that stays there (attached/attached_live.c). */
enum { LIVE_CLIENTS = 1024 };
struct live_clients {
    const struct ttd_live_functions *functions; /* of an attached library */
    _Atomic uint32_t used;
    struct live_client {
        struct ttd_live live; /* first: a pointer to it is one to the client */
        uint64_t guid[2];
        _Atomic uint64_t
            recording; /* where it is known to be open: the key of an attached library */
        _Atomic bool is_open;
    } items[LIVE_CLIENTS];
};

struct live_clients *live_clients(void);

/** Whether the client was not closed. */
bool live_client_is_open(const struct ttd_live *live);

/** Says in the trace that the client is open, if an earlier recording of the process has opened it.
 * Only a library that is attached meets such clients. */
#ifdef TTD_ATTACHED
void live_announce(struct thread *level, const struct ttd_live *live);
#define LIVE_ANNOUNCE(level, live) live_announce(level, live)
#else
#define LIVE_ANNOUNCE(level, live) ((void)(live))
#endif

/** Begins a function of the API, in whose frame it is inlined, as a hook does. A suspended thread
 * is awake until live_leave(). NULL if the process does not record. The client may be NULL. */
static inline __attribute__((always_inline)) struct thread *live_enter(const struct ttd_live *live)
{
    island_awake();
    struct thread *level = target_enter(0);
    if (!level)
        return NULL;
    target_phase(level, PHASE_RECORD);
    if (live)
        LIVE_ANNOUNCE(level, live);
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

/** All calls, those about custom heaps (heap.c), and about dumps. */
extern const struct ttd_live_functions live_functions;
extern const struct ttd_live_heap_functions live_heap_functions;
extern const struct ttd_live_dump_functions live_dump_functions;

#endif
