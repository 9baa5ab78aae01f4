/* SPDX-License-Identifier: MIT */
/** Every block that ever covered an address. */
#ifndef ANALYZER_HEAP_HISTORY_H
#define ANALYZER_HEAP_HISTORY_H

#include "heap/locate.h"
#include "heap/pass.h"
#include "heap/place.h"

/** A block that has, or had, an address of the range. */
typedef struct heap_owner {
    heap_block block;
    /**
     * The call that released it; unknown while it is live. An Alloc or ReAlloc of another block
     * (action Alloc, or ReAlloc with `overlapped`) means that its release is missing in the trace.
     */
    heap_place released;
    bool overlapped;
    /** Reallocated from there; 0 if newly allocated. */
    uint64_t previous_address;
    /** Counted from 1 in order of acquisition. */
    uint64_t ordinal;
} heap_owner;

typedef struct heap_history {
    /** Addresses, both included. */
    uint64_t first;
    uint64_t last;
    /** In order of acquisition: the last `max` of `total`. */
    heap_owner *owners;
    size_t count;
    size_t max;
    uint64_t total;
    /** The first owner acquired after this is the last that is kept. */
    ttd_position around;
    bool is_complete;
    heap_outcome outcome;
} heap_history;

/**
 * Goes through the whole trace.
 *
 * @param history  with first, last, max and around set; the rest is set on TTD_OK, release with
 *                 heap_history_free()
 * Others and statuses as heap_pass_run().
 */
ttd_status heap_history_find(ttd_reader *reader, const heap_batch_hook *hook, heap_history *history,
                             ttd_error *error);
void heap_history_free(heap_history *history);

/** The owner that was live at a position, or NULL. */
const heap_owner *heap_history_live(const heap_history *history, ttd_position at);
/** The owner that was released last at the position or before it, or NULL. */
const heap_owner *heap_history_before(const heap_history *history, ttd_position at);
/** The owner that was acquired first after the position, or NULL. */
const heap_owner *heap_history_after(const heap_history *history, ttd_position at);

#endif
