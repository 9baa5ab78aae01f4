/* SPDX-License-Identifier: MIT */
#include "preload/threads/island.h"

#include <string.h>

#include "preload/threads/levels.h"

enum ttd_island_state island_state(const struct thread *thread)
{
    const struct island *island = &thread->island;
    if (!island->is_open)
        return TTD_ISLAND_NOT_STARTED;
    if (island->remaining == 0)
        return TTD_ISLAND_THROTTLED;
    bool is_paused = island->pauses != 0 ||
                     atomic_load_explicit(&thread->slot->paused, memory_order_relaxed) != 0;
    return is_paused ? TTD_ISLAND_PAUSED : TTD_ISLAND_RECORDING;
}

struct thread *island_suspended(void)
{
    return thread_locals.suspended;
}

struct thread *island_forget(void)
{
    struct thread *thread = thread_locals.suspended;
    thread_locals.suspended = NULL;
    return thread;
}

void island_awake(void)
{
    if (thread_locals.suspended)
        target_self = island_forget();
}

void island_open(struct island *island, const uint64_t client[2], uint64_t activity,
                 uint64_t maximum)
{
    *island = (struct island){.is_open = true,
                              .is_off = island->is_off,
                              .skipped = island->skipped,
                              .client = {client[0], client[1]},
                              .activity = activity,
                              .maximum = maximum,
                              .remaining = maximum};
}

void island_changed(struct thread *level, enum ttd_thread_event kind, const uint64_t client[2],
                    const void *data, size_t size)
{
    struct thread *thread = island_thread(level);
    struct island *island = &thread->island;
    enum ttd_island_state state = island_state(thread);
    uint64_t skipped =
        atomic_load_explicit(&thread->slot->lost[LOSS_OFF], memory_order_relaxed) - island->skipped;
    const uint64_t fields[TTD_THREAD_EVENT_FIELDS] = {
        kind, client[0], client[1], island->activity, island->maximum, state, skipped};
    uint64_t own[2];
    memcpy(own, TTD_CLIENT_THREADS, sizeof own);
    if (level->outer && !level_is_ready(level))
        level_count_lost(level);
    else
        thread_append_event(level, own, EVENT_OF_THREAD,
                            &(struct event_data){fields, TTD_THREAD_EVENT_FIELDS, data, size});
    island->is_off = state != TTD_ISLAND_RECORDING;
    island->skipped += skipped;
}

/* A signal handler may come between the two stores. With both set the thread would record twice,
 * with neither it would attach a second time; so one of them is always the thread, and hooks look
 * at target_self first. */
void island_update(struct thread *level)
{
    struct thread *thread = island_thread(level);
    struct island *island = &thread->island;
    bool is_off = island_state(thread) != TTD_ISLAND_RECORDING;
    if (is_off != island->is_off) /* by the recorder's user */
        island_changed(level, is_off ? TTD_THREAD_PAUSED : TTD_THREAD_RESUMED,
                       (const uint64_t[2]){0}, NULL, 0);
    if (is_off) {
        thread_locals.suspended = thread;
        atomic_signal_fence(memory_order_seq_cst);
        target_self = NULL;
    } else {
        target_self = thread;
        atomic_signal_fence(memory_order_seq_cst);
        thread_locals.suspended = NULL;
    }
}

/* Whether a call serves the one around it: from a site that is known for that, or from a hook. */
static bool island_is_serving(uintptr_t site)
{
    extern const char own_begin __asm__("__ehdr_start") __attribute__((visibility("hidden")));
    extern const char own_end __asm__("_end") __attribute__((visibility("hidden")));
    return level_is_serving(site) || (site >= (uintptr_t)&own_begin && site < (uintptr_t)&own_end);
}

struct thread *island_try_awake(uintptr_t site)
{
    struct thread *thread = thread_locals.suspended;
    if (island_state(thread) != TTD_ISLAND_RECORDING || thread->guard != 0) {
        atomic_fetch_add_explicit(&thread->slot->lost[LOSS_OFF], !island_is_serving(site),
                                  memory_order_relaxed);
        return NULL;
    }
    thread->guard = (uintptr_t)__builtin_frame_address(0);
    target_phase(thread, PHASE_RECORD);
    island_update(thread);
    target_leave(thread);
    return thread;
}
