/* SPDX-License-Identifier: MIT */
#include "base/ring.h"

void ring_init(struct ring *ring, uint64_t size)
{
    *ring = (struct ring){.size = size};
    pthread_mutex_init(&ring->mutex, NULL);
    pthread_cond_init(&ring->filled, NULL);
    pthread_cond_init(&ring->emptied, NULL);
}

void ring_destroy(struct ring *ring)
{
    pthread_mutex_destroy(&ring->mutex);
    pthread_cond_destroy(&ring->filled);
    pthread_cond_destroy(&ring->emptied);
}

/* Slots that must be filled, or empty, before a waiting side is woken: it then finds several slots
 * of work. */
static uint64_t enough(const struct ring *ring)
{
    return ring->size / 2;
}

/* Wakes the other side if it waits. No wake-up is lost: a side announces that it waits before it
 * looks at the counts. */
static void wake(struct ring *ring, const _Atomic bool *waits, pthread_cond_t *condition)
{
    if (!atomic_load(waits))
        return;
    pthread_mutex_lock(&ring->mutex);
    pthread_cond_signal(condition);
    pthread_mutex_unlock(&ring->mutex);
}

static void ring_end(struct ring *ring, _Atomic bool *ended, pthread_cond_t *condition)
{
    pthread_mutex_lock(&ring->mutex);
    atomic_store(ended, true);
    pthread_cond_signal(condition);
    pthread_mutex_unlock(&ring->mutex);
}

/* ---- The filler ---- */

bool ring_fill(struct ring *ring, uint64_t tolerated)
{
    atomic_fetch_add(&ring->head, 1);
    uint64_t count = ring_count(ring);
    if (count > tolerated || count >= enough(ring))
        wake(ring, &ring->taker_waits, &ring->filled);
    if (count > tolerated) {
        pthread_mutex_lock(&ring->mutex);
        atomic_store(&ring->filler_waits, true);
        while (!atomic_load(&ring->taker_ended) && ring_count(ring) > tolerated)
            pthread_cond_wait(&ring->emptied, &ring->mutex);
        atomic_store(&ring->filler_waits, false);
        pthread_mutex_unlock(&ring->mutex);
    }
    return !atomic_load(&ring->taker_ended);
}

void ring_end_filling(struct ring *ring)
{
    ring_end(ring, &ring->filler_ended, &ring->filled);
}

/* ---- The taker ---- */

bool ring_wait_filled(struct ring *ring)
{
    if (ring_count(ring))
        return true;
    pthread_mutex_lock(&ring->mutex);
    atomic_store(&ring->taker_waits, true);
    while (!atomic_load(&ring->filler_ended) && !ring_count(ring))
        pthread_cond_wait(&ring->filled, &ring->mutex);
    atomic_store(&ring->taker_waits, false);
    pthread_mutex_unlock(&ring->mutex);
    return ring_count(ring) != 0;
}

void ring_empty(struct ring *ring)
{
    atomic_fetch_add(&ring->tail, 1);
    if (ring_count(ring) <= ring->size - enough(ring))
        wake(ring, &ring->filler_waits, &ring->emptied);
}

void ring_end_taking(struct ring *ring)
{
    ring_end(ring, &ring->taker_ended, &ring->emptied);
}
