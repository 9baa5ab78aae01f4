/* SPDX-License-Identifier: MIT */
#include "travel/prefetcher.h"

#include <stdlib.h>
#include <string.h>

#include <ttdtrace/advanced.h>

#include "base/task.h"

/* Number of batches that the caller reads itself before a thread is started. Shorter ways are
 * replayed before the thread would have decoded anything. */
#define LONG_WAY 64

#define SLOTS HEAP_PREFETCH_BATCHES

uint32_t heap_prefetch_batches(void)
{
    return task_has_processor() ? HEAP_PREFETCH_BATCHES : 1;
}

void heap_prefetcher_init(struct heap_prefetcher *prefetcher, struct ttd_reader *reader)
{
    memset(prefetcher, 0, sizeof *prefetcher);
    prefetcher->reader = reader;
    ring_init(&prefetcher->ring, SLOTS);
}

void heap_prefetcher_free(struct heap_prefetcher *prefetcher)
{
    if (!prefetcher->reader)
        return;
    heap_prefetcher_pause(prefetcher);
    free(prefetcher->slots);
    ring_destroy(&prefetcher->ring);
    prefetcher->reader = NULL;
}

static struct ttd_batch *prefetcher_slot(const struct heap_prefetcher *prefetcher, uint64_t number)
{
    return &prefetcher->slots[number % SLOTS];
}

/* ---- The thread ---- */

/*
 * A batch of events stays valid while the reader decodes SLOTS - 1 more, so one slot of the ring
 * stays empty. Any other batch is valid only until the reader is called again: the thread waits
 * until the caller has used it.
 */
static uint64_t tolerated(const struct ttd_batch *batch)
{
    return batch->kind == TTD_KIND_EVENTS ? SLOTS - 1 : 0;
}

static void *prefetcher_read_ahead(void *argument)
{
    struct heap_prefetcher *prefetcher = argument;
    bool go_on = true;
    while (go_on) {
        struct ttd_batch *slot = prefetcher_slot(prefetcher, prefetcher->ring.head);
        prefetcher->status = ttd_reader_next(prefetcher->reader, slot, &prefetcher->error);
        if (prefetcher->status != TTD_OK) {
            ring_end_filling(&prefetcher->ring);
            break;
        }
        go_on = ring_fill(&prefetcher->ring, tolerated(slot));
    }
    return NULL;
}

/* ---- The caller ---- */

/* Starts the thread if the way is long. Failures are ignored: the caller reads by itself then. */
static void prefetcher_start(struct heap_prefetcher *prefetcher)
{
    if (prefetcher->passed < LONG_WAY || prefetcher->is_off)
        return;
    prefetcher->passed = 0;
    if (ttd_reader_event_batches(prefetcher->reader) < SLOTS)
        return;
    if (!prefetcher->slots)
        prefetcher->slots = malloc(SLOTS * sizeof *prefetcher->slots);
    prefetcher->is_running =
        prefetcher->slots &&
        pthread_create(&prefetcher->thread, NULL, prefetcher_read_ahead, prefetcher) == 0;
}

void heap_prefetcher_pause(struct heap_prefetcher *prefetcher)
{
    if (!prefetcher->is_running)
        return;
    ring_end_taking(&prefetcher->ring);
    pthread_join(prefetcher->thread, NULL);
    prefetcher->is_running = false;
    atomic_store(&prefetcher->ring.taker_ended, false);
}

void heap_prefetcher_forget(struct heap_prefetcher *prefetcher)
{
    heap_prefetcher_pause(prefetcher);
    ring_destroy(&prefetcher->ring);
    ring_init(&prefetcher->ring, SLOTS);
    prefetcher->passed = 0;
    prefetcher->holds = false;
}

/* Gives back the slot in use, and takes the next one. Returns NULL if no slot is filled and no
 * thread runs that would fill one. */
static const struct ttd_batch *prefetcher_take_slot(struct heap_prefetcher *prefetcher)
{
    struct ring *ring = &prefetcher->ring;
    if (prefetcher->holds)
        ring_empty(ring);
    prefetcher->holds = prefetcher->is_running ? ring_wait_filled(ring) : ring_count(ring) != 0;
    return prefetcher->holds ? prefetcher_slot(prefetcher, ring->tail) : NULL;
}

enum ttd_status heap_prefetcher_next(struct heap_prefetcher *prefetcher, struct ttd_batch *batch,
                                     struct ttd_error *error)
{
    _Atomic bool *has_ended = &prefetcher->ring.filler_ended;
    if (!prefetcher->is_running && !ring_count(&prefetcher->ring) && !atomic_load(has_ended))
        prefetcher_start(prefetcher);
    const struct ttd_batch *slot = prefetcher_take_slot(prefetcher);
    if (slot) {
        *batch = *slot;
        return TTD_OK;
    }
    heap_prefetcher_pause(prefetcher);
    if (!atomic_load(has_ended)) {
        prefetcher->passed++;
        return ttd_reader_next(prefetcher->reader, batch, error);
    }
    atomic_store(has_ended, false);
    if (prefetcher->status != TTD_END)
        *error = prefetcher->error;
    return prefetcher->status;
}
