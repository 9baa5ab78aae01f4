/* SPDX-License-Identifier: MIT */
#include "travel/prefetcher.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Batches of a way that is long enough for a thread to be worth it. */
#define LONG_WAY 64

#define SLOTS HEAP_PREFETCH_BATCHES

/* Whoever waits goes on when this many slots are filled, or empty. */
#define ENOUGH (SLOTS / 2)

uint32_t heap_prefetch_batches(void)
{
    cpu_set_t set;
    bool has_processor = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
    return has_processor ? HEAP_PREFETCH_BATCHES : 1;
}

void heap_prefetcher_init(struct heap_prefetcher *ahead, struct ttd_reader *reader)
{
    memset(ahead, 0, sizeof *ahead);
    ahead->reader = reader;
    pthread_mutex_init(&ahead->mutex, NULL);
    pthread_cond_init(&ahead->filled, NULL);
    pthread_cond_init(&ahead->emptied, NULL);
}

void heap_prefetcher_free(struct heap_prefetcher *ahead)
{
    if (!ahead->reader)
        return;
    heap_prefetcher_pause(ahead);
    free(ahead->slots);
    pthread_mutex_destroy(&ahead->mutex);
    pthread_cond_destroy(&ahead->filled);
    pthread_cond_destroy(&ahead->emptied);
    ahead->reader = NULL;
}

static struct ttd_batch *slot_of(const struct heap_prefetcher *ahead, uint64_t number)
{
    return &ahead->slots[number % SLOTS];
}

/* How many slots are filled. The other side's count may have moved on since. */
static uint64_t count_filled(const struct heap_prefetcher *ahead)
{
    uint64_t tail = atomic_load(&ahead->tail);
    return atomic_load(&ahead->head) - tail;
}

/* Wakes the other side, if it waits; it looks at the counts after it has said so. */
static void wake(struct heap_prefetcher *ahead, const _Atomic bool *waits,
                 pthread_cond_t *condition)
{
    if (!atomic_load(waits))
        return;
    pthread_mutex_lock(&ahead->mutex);
    pthread_cond_signal(condition);
    pthread_mutex_unlock(&ahead->mutex);
}

/* ---- The thread ---- */

/* Waits until at most so many slots are filled, or the thread is to stop. */
static void wait_for_room(struct heap_prefetcher *ahead, uint64_t tolerated)
{
    pthread_mutex_lock(&ahead->mutex);
    atomic_store(&ahead->thread_waits, true);
    while (!atomic_load(&ahead->stop) && count_filled(ahead) > tolerated)
        pthread_cond_wait(&ahead->emptied, &ahead->mutex);
    atomic_store(&ahead->thread_waits, false);
    pthread_mutex_unlock(&ahead->mutex);
}

/*
 * Hands over the slot that was filled, and waits for another. `is_fleeting`: it is valid only until
 * the reader is called again. Otherwise one slot stays empty: its batch is decoded to where the
 * oldest of SLOTS batches was. False when the thread is to stop.
 */
static bool hand_over(struct heap_prefetcher *ahead, bool is_fleeting)
{
    uint64_t tolerated = is_fleeting ? 0 : SLOTS - 1;
    atomic_fetch_add(&ahead->head, 1);
    uint64_t filled = count_filled(ahead);
    if (is_fleeting || filled >= ENOUGH)
        wake(ahead, &ahead->caller_waits, &ahead->filled);
    if (filled > tolerated)
        wait_for_room(ahead, tolerated);
    return !atomic_load(&ahead->stop);
}

static void *read_ahead(void *argument)
{
    struct heap_prefetcher *ahead = argument;
    enum ttd_status status = TTD_OK;
    bool go_on = true;
    while (go_on) {
        struct ttd_batch *slot = slot_of(ahead, ahead->head);
        status = ttd_reader_next(ahead->reader, slot, &ahead->error);
        if (status != TTD_OK)
            break;
        go_on = hand_over(ahead, slot->kind != TTD_KIND_EVENTS);
    }
    pthread_mutex_lock(&ahead->mutex);
    ahead->status = status;
    ahead->has_ended = status != TTD_OK;
    pthread_cond_signal(&ahead->filled);
    pthread_mutex_unlock(&ahead->mutex);
    return NULL;
}

/* ---- The caller ---- */

/* Starts the thread, if that is worth it and possible: it is not needed. */
static void start(struct heap_prefetcher *ahead)
{
    if (ahead->passed < LONG_WAY)
        return;
    ahead->passed = 0;
    if (ttd_reader_event_batches(ahead->reader) < SLOTS)
        return;
    if (!ahead->slots)
        ahead->slots = malloc(SLOTS * sizeof *ahead->slots);
    ahead->is_running =
        ahead->slots && pthread_create(&ahead->thread, NULL, read_ahead, ahead) == 0;
}

void heap_prefetcher_pause(struct heap_prefetcher *ahead)
{
    if (!ahead->is_running)
        return;
    pthread_mutex_lock(&ahead->mutex);
    atomic_store(&ahead->stop, true);
    pthread_cond_signal(&ahead->emptied);
    pthread_mutex_unlock(&ahead->mutex);
    pthread_join(ahead->thread, NULL);
    ahead->is_running = false;
    atomic_store(&ahead->stop, false);
}

void heap_prefetcher_forget(struct heap_prefetcher *ahead)
{
    heap_prefetcher_pause(ahead);
    ahead->head = ahead->tail = ahead->passed = 0;
    ahead->holds = ahead->has_ended = false;
}

/* Waits for a slot to be filled, or for the thread's end. */
static void wait_for_slot(struct heap_prefetcher *ahead)
{
    pthread_mutex_lock(&ahead->mutex);
    atomic_store(&ahead->caller_waits, true);
    while (!ahead->has_ended && !count_filled(ahead))
        pthread_cond_wait(&ahead->filled, &ahead->mutex);
    atomic_store(&ahead->caller_waits, false);
    pthread_mutex_unlock(&ahead->mutex);
}

/* Gives back the slot that was used, and takes the next; NULL when there is none. */
static const struct ttd_batch *take_slot(struct heap_prefetcher *ahead)
{
    atomic_fetch_add(&ahead->tail, ahead->holds);
    uint64_t filled = count_filled(ahead);
    if (filled <= SLOTS - ENOUGH)
        wake(ahead, &ahead->thread_waits, &ahead->emptied);
    if (!filled && ahead->is_running)
        wait_for_slot(ahead);
    ahead->holds = count_filled(ahead) != 0;
    return ahead->holds ? slot_of(ahead, ahead->tail) : NULL;
}

enum ttd_status heap_prefetcher_next(struct heap_prefetcher *ahead, struct ttd_batch *batch,
                                     struct ttd_error *error)
{
    if (!ahead->is_running && !ahead->holds && ahead->head == ahead->tail && !ahead->has_ended)
        start(ahead);
    const struct ttd_batch *slot = take_slot(ahead);
    if (slot) {
        *batch = *slot;
        return TTD_OK;
    }
    heap_prefetcher_pause(ahead);
    if (!ahead->has_ended) {
        ahead->passed++;
        return ttd_reader_next(ahead->reader, batch, error);
    }
    ahead->has_ended = false;
    if (ahead->status != TTD_END)
        *error = ahead->error;
    return ahead->status;
}
