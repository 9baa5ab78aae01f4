/* SPDX-License-Identifier: MIT */
/** A ring of slots that one thread, the filler, fills, and another, the taker, empties. The slots
 * are the caller's: number i is in slot i modulo the size. */
#ifndef ANALYZER_BASE_RING_H
#define ANALYZER_BASE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

struct ring {
    uint64_t size;
    /** Number of slots ever filled, changed by the filler only; and ever emptied, by the taker
     * only. */
    _Atomic uint64_t head;
    _Atomic uint64_t tail;
    /** Locked only by a side that has to wait, and to wake it. */
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    pthread_cond_t emptied;
    _Atomic bool filler_waits;
    _Atomic bool taker_waits;
    /** A side has ended: the other one does not wait for it any more. */
    _Atomic bool filler_ended;
    _Atomic bool taker_ended;
};

void ring_init(struct ring *ring, uint64_t size);
void ring_destroy(struct ring *ring);

/** Counts the filled slots. The other side's count may have moved on since. */
static inline uint64_t ring_count(const struct ring *ring)
{
    uint64_t tail = atomic_load(&ring->tail);
    return atomic_load(&ring->head) - tail;
}

/* ---- The filler ---- */

/** Hands over the slot at `head`, which is filled, then waits until at most `tolerated` slots are
 * filled, or the taker has ended. Returns whether it has not. */
bool ring_fill(struct ring *ring, uint64_t tolerated);

void ring_end_filling(struct ring *ring);

/* ---- The taker ---- */

/** Waits until the slot at `tail` is filled, or the filler has ended. Returns whether it is
 * filled. */
bool ring_wait_filled(struct ring *ring);

/** Gives back the slot at `tail`. */
void ring_empty(struct ring *ring);

void ring_end_taking(struct ring *ring);

#endif
