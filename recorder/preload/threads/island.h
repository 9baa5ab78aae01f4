/* SPDX-License-Identifier: MIT */
/**
 * Islands: unbroken stretches of recording in one thread. A thread that does not record at present
 * is *suspended*: it is not target_self, so that all its hooks take the slow path, and threads that
 * record pay nothing. Each change is an event of TTD_CLIENT_THREADS in the thread's stream.
 */
#ifndef RECORDER_PRELOAD_THREADS_ISLAND_H
#define RECORDER_PRELOAD_THREADS_ISLAND_H

#include <stdbool.h>

#include <ttdtrace/trace.h>

#include "preload/threads/recorded_thread.h"

/** Returns level 0 of the thread. */
static inline struct thread *island_thread(struct thread *level)
{
    while (level->outer)
        level = level->outer;
    return level;
}

/** Returns the state that the island of the thread, and the recorder's user, want. */
enum ttd_island_state island_state(const struct thread *thread);

/** Returns the calling thread if it is suspended; else NULL. */
struct thread *island_suspended(void);

/** Lets the calling thread record if nothing suspends it any more. Returns it; NULL, with the call
 * counted as not recorded, if it stays suspended. A call that serves the one around it is not
 * counted, as far as its `site` is known for that. */
struct thread *island_try_awake(uintptr_t site);

/** Lets the calling thread record, whatever suspends it, until island_update(). */
void island_awake(void);

/** Suspends the calling thread, or lets it record, as island_state() says. The level is in
 * PHASE_RECORD, like for all that follow. */
void island_update(struct thread *level);

/** Forgets that the calling thread is suspended, in the child of a fork. Returns the parent's
 * thread, NULL if that was not suspended. */
struct thread *island_forget(void);

/** Opens an island of a client with the whole of its throttle. */
void island_open(struct island *island, const uint64_t client[2], uint64_t activity,
                 uint64_t maximum);

/** Writes a change into the trace, with the user's data. */
void island_changed(struct thread *level, enum ttd_thread_event kind, const uint64_t client[2],
                    const void *data, size_t size);

#endif
