/* SPDX-License-Identifier: MIT */
/**
 * The table of live blocks, by address. No allocation per block; 64 bytes of record and some 30 of
 * index for each. A heap is destroyed in constant time: its blocks become stale and are swept up
 * later, so that a trace of many small destructions costs no more than its length.
 */
#ifndef ANALYZER_HEAP_LIVE_H
#define ANALYZER_HEAP_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/model.h>
#include <ttdtrace/status.h>

#include "base/hash.h"
#include "base/map.h"

/** A live block. */
typedef struct heap_block {
    /** Never 0. */
    uint64_t address;
    uint64_t size;
    /** Number of the event that acquired it. */
    uint64_t event;
    /** When it was acquired: time_end of that event. */
    ttd_position allocated;
    ttd_id stack;
    ttd_id heap;
    ttd_id thread;
    /** For whoever observes the replay; 0 at first, and carried through reallocations. */
    uint32_t user;
    /** A ttd_api_function. */
    uint8_t api;
    /** A ttd_action: Alloc or ReAlloc. */
    uint8_t action;
} heap_block;

/** A slot of the index; empty when the address is 0. */
typedef struct heap_slot {
    uint64_t address;
    uint32_t block;
    uint32_t life;
} heap_slot;

/** A heap from its first block to its destruction. */
typedef struct heap_life {
    /** In use: the heap. Unused: the next unused life. */
    uint32_t heap;
    bool ended;
    uint64_t blocks;
} heap_life;

/** Called for a stale block that is forgotten. */
typedef void (*heap_discard_function)(void *context, const heap_block *block);

typedef struct heap_live {
    heap_slot *slots;
    size_t slot_capacity;
    /** Slots in use: live and stale. */
    size_t filled;
    /** Live blocks. */
    uint64_t count;
    hash_key key;

    heap_block *blocks;
    size_t block_capacity;
    uint32_t block_count;
    /** Records of `blocks` that are not in use, last freed first. */
    uint32_t *unused;
    size_t unused_capacity;
    uint32_t unused_count;

    heap_life *lives;
    size_t life_capacity;
    uint32_t life_count;
    uint32_t life_unused;
    hash_map life_of_heap;
    ttd_id last_heap;
    uint32_t last_life;

    heap_discard_function discard;
    void *discard_context;
} heap_live;

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
ttd_status heap_live_init(heap_live *live);
void heap_live_free(heap_live *live);

/** Brings the slot of an address nearer, for a lookup that comes soon. */
static inline void heap_live_prefetch(const heap_live *live, uint64_t address)
{
    __builtin_prefetch(&live->slots[hash_value(live->key, address) & (live->slot_capacity - 1)], 1);
}

/** What heap_live_insert() found and did. */
typedef struct heap_insertion {
    /** The record, valid until the next insertion. All its members are to be set. */
    heap_block *block;
    /** Whether a live block at the address is replaced; the record still holds it. */
    bool replaced;
} heap_insertion;

/**
 * Adds a block at `address`, not 0, in `heap`.
 *
 * @param insertion  set on TTD_OK
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
ttd_status heap_live_insert(heap_live *live, uint64_t address, ttd_id heap,
                            heap_insertion *insertion);

/**
 * Removes the block at `address`; false if there is none.
 *
 * @param old  set to the block; may be NULL, which is faster
 */
bool heap_live_remove(heap_live *live, uint64_t address, heap_block *old);

/** The block at `address`, or NULL; valid until the next change. */
heap_block *heap_live_find(const heap_live *live, uint64_t address);

/** Removes all blocks of a heap; returns how many there were. */
uint64_t heap_live_destroy(heap_live *live, ttd_id heap);

/** Forgets stale blocks now, so that the discard function has seen them all. */
ttd_status heap_live_sweep(heap_live *live);

/**
 * Steps through the live blocks in no particular order: `*cursor` is 0 at first. NULL at the end.
 */
heap_block *heap_live_each(const heap_live *live, size_t *cursor);

#endif
