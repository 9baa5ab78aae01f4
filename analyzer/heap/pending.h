/* SPDX-License-Identifier: MIT */
/** Pending effects: blocks that reallocations in flight will acquire. */
#ifndef ANALYZER_HEAP_PENDING_H
#define ANALYZER_HEAP_PENDING_H

#include "heap/heap_live.h"

struct heap_pending {
    /** The block to be acquired, at block.allocated. */
    struct heap_block block;
    /** Flags of the call. */
    uint64_t flags;
    /** Address passed to the call, or 0. */
    uint64_t previous_address;
    /** The block at that address, if known. */
    bool has_previous;
    struct heap_block previous;
};

/** A priority queue, ordered by position and then by event. All zero when empty. */
struct heap_queue {
    struct heap_pending *items;
    size_t count;
    size_t capacity;
};

void heap_queue_free(struct heap_queue *queue);

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_queue_push(struct heap_queue *queue, const struct heap_pending *pending);

/** Removes the first one; the queue must not be empty. */
void heap_queue_pop(struct heap_queue *queue, struct heap_pending *pending);

/** Whether an effect is due at `position` or before. */
static inline bool heap_queue_due(const struct heap_queue *queue, struct ttd_position position)
{
    return queue->count && ttd_position_compare(queue->items[0].block.allocated, position) <= 0;
}

#endif
