/* SPDX-License-Identifier: MIT */
#include "travel/prefetcher.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <ttdtrace/advanced.h>

/* Number of batches that the caller reads itself before a thread is started. Shorter ways are
 * replayed before the thread would have decoded anything. */
#define LONG_WAY 64

#define SLOTS HEAP_PREFETCH_BATCHES

/* Slots that must be filled, or empty, before a waiting side is woken. */
#define ENOUGH (SLOTS / 2)

uint32_t heap_prefetch_batches(void)
{
#ifdef THREAD_NONE
    return 1;
#else
    cpu_set_t set;
    bool has_processor = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
    return has_processor ? HEAP_PREFETCH_BATCHES : 1;
#endif
}

void heap_prefetcher_init(struct heap_prefetcher *prefetcher, struct ttd_reader *reader)
{
    memset(prefetcher, 0, sizeof *prefetcher);
    prefetcher->reader = reader;
    pthread_mutex_init(&prefetcher->mutex, NULL);
    pthread_cond_init(&prefetcher->filled, NULL);
    pthread_cond_init(&prefetcher->emptied, NULL);
}

void heap_prefetcher_free(struct heap_prefetcher *prefetcher)
{
    if (!prefetcher->reader)
        return;
    heap_prefetcher_pause(prefetcher);
    free(prefetcher->slots);
    pthread_mutex_destroy(&prefetcher->mutex);
    pthread_cond_destroy(&prefetcher->filled);
    pthread_cond_destroy(&prefetcher->emptied);
    prefetcher->reader = NULL;
}

static struct ttd_batch *slot_of(const struct heap_prefetcher *prefetcher, uint64_t number)
{
    return &prefetcher->slots[number % SLOTS];
}

/* Counts the filled slots. The other side's count may have moved on since. */
static uint64_t count_filled(const struct heap_prefetcher *prefetcher)
{
    uint64_t tail = atomic_load(&prefetcher->tail);
    return atomic_load(&prefetcher->head) - tail;
}

/* Wakes the other side if it waits. No wake-up is lost: a side announces that it waits before it
 * looks at the counts. */
static void wake(struct heap_prefetcher *prefetcher, const _Atomic bool *waits,
                 pthread_cond_t *condition)
{
    if (!atomic_load(waits))
        return;
    pthread_mutex_lock(&prefetcher->mutex);
    pthread_cond_signal(condition);
    pthread_mutex_unlock(&prefetcher->mutex);
}

/* ---- The thread ---- */

/* Waits until at most so many slots are filled, or the thread is to stop. */
static void wait_for_room(struct heap_prefetcher *prefetcher, uint64_t tolerated)
{
    pthread_mutex_lock(&prefetcher->mutex);
    atomic_store(&prefetcher->thread_waits, true);
    while (!atomic_load(&prefetcher->stop) && count_filled(prefetcher) > tolerated)
        pthread_cond_wait(&prefetcher->emptied, &prefetcher->mutex);
    atomic_store(&prefetcher->thread_waits, false);
    pthread_mutex_unlock(&prefetcher->mutex);
}

/*
 * Hands the filled slot to the caller, and waits until another one may be filled. A batch of events
 * stays valid while the reader decodes SLOTS - 1 more, so one slot of the ring stays empty. Any
 * other batch (`is_fleeting`) is valid only until the reader is called again: the thread waits
 * until the caller has used it. Returns false when the thread is to stop.
 */
static bool hand_over(struct heap_prefetcher *prefetcher, bool is_fleeting)
{
    uint64_t tolerated = is_fleeting ? 0 : SLOTS - 1;
    atomic_fetch_add(&prefetcher->head, 1);
    uint64_t filled = count_filled(prefetcher);
    if (is_fleeting || filled >= ENOUGH)
        wake(prefetcher, &prefetcher->caller_waits, &prefetcher->filled);
    if (filled > tolerated)
        wait_for_room(prefetcher, tolerated);
    return !atomic_load(&prefetcher->stop);
}

static void *read_ahead(void *argument)
{
    struct heap_prefetcher *prefetcher = argument;
    enum ttd_status status = TTD_OK;
    bool go_on = true;
    while (go_on) {
        struct ttd_batch *slot = slot_of(prefetcher, prefetcher->head);
        status = ttd_reader_next(prefetcher->reader, slot, &prefetcher->error);
        if (status != TTD_OK)
            break;
        go_on = hand_over(prefetcher, slot->kind != TTD_KIND_EVENTS);
    }
    pthread_mutex_lock(&prefetcher->mutex);
    prefetcher->status = status;
    prefetcher->has_ended = status != TTD_OK;
    pthread_cond_signal(&prefetcher->filled);
    pthread_mutex_unlock(&prefetcher->mutex);
    return NULL;
}

/* ---- The caller ---- */

/* Starts the thread if the way is long. Failures are ignored: the caller reads by itself then. */
static void start(struct heap_prefetcher *prefetcher)
{
    if (prefetcher->passed < LONG_WAY)
        return;
    prefetcher->passed = 0;
    if (ttd_reader_event_batches(prefetcher->reader) < SLOTS)
        return;
    if (!prefetcher->slots)
        prefetcher->slots = malloc(SLOTS * sizeof *prefetcher->slots);
    prefetcher->is_running =
        prefetcher->slots && pthread_create(&prefetcher->thread, NULL, read_ahead, prefetcher) == 0;
}

void heap_prefetcher_pause(struct heap_prefetcher *prefetcher)
{
    if (!prefetcher->is_running)
        return;
    pthread_mutex_lock(&prefetcher->mutex);
    atomic_store(&prefetcher->stop, true);
    pthread_cond_signal(&prefetcher->emptied);
    pthread_mutex_unlock(&prefetcher->mutex);
    pthread_join(prefetcher->thread, NULL);
    prefetcher->is_running = false;
    atomic_store(&prefetcher->stop, false);
}

void heap_prefetcher_forget(struct heap_prefetcher *prefetcher)
{
    heap_prefetcher_pause(prefetcher);
    prefetcher->head = prefetcher->tail = prefetcher->passed = 0;
    prefetcher->holds = prefetcher->has_ended = false;
}

/* Waits for a slot to be filled, or for the thread's end. */
static void wait_for_slot(struct heap_prefetcher *prefetcher)
{
    pthread_mutex_lock(&prefetcher->mutex);
    atomic_store(&prefetcher->caller_waits, true);
    while (!prefetcher->has_ended && !count_filled(prefetcher))
        pthread_cond_wait(&prefetcher->filled, &prefetcher->mutex);
    atomic_store(&prefetcher->caller_waits, false);
    pthread_mutex_unlock(&prefetcher->mutex);
}

/* Gives back the slot in use, and takes the next one. Returns NULL if no slot is filled and no
 * thread runs that would fill one. */
static const struct ttd_batch *take_slot(struct heap_prefetcher *prefetcher)
{
    atomic_fetch_add(&prefetcher->tail, prefetcher->holds);
    uint64_t filled = count_filled(prefetcher);
    if (filled <= SLOTS - ENOUGH)
        wake(prefetcher, &prefetcher->thread_waits, &prefetcher->emptied);
    if (!filled && prefetcher->is_running)
        wait_for_slot(prefetcher);
    prefetcher->holds = count_filled(prefetcher) != 0;
    return prefetcher->holds ? slot_of(prefetcher, prefetcher->tail) : NULL;
}

enum ttd_status heap_prefetcher_next(struct heap_prefetcher *prefetcher, struct ttd_batch *batch,
                                     struct ttd_error *error)
{
    if (!prefetcher->is_running && !prefetcher->holds && prefetcher->head == prefetcher->tail &&
        !prefetcher->has_ended)
        start(prefetcher);
    const struct ttd_batch *slot = take_slot(prefetcher);
    if (slot) {
        *batch = *slot;
        return TTD_OK;
    }
    heap_prefetcher_pause(prefetcher);
    if (!prefetcher->has_ended) {
        prefetcher->passed++;
        return ttd_reader_next(prefetcher->reader, batch, error);
    }
    prefetcher->has_ended = false;
    if (prefetcher->status != TTD_END)
        *error = prefetcher->error;
    return prefetcher->status;
}
