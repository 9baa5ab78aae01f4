/* SPDX-License-Identifier: MIT */
/**
 * The table of live blocks, by address and heap (spec, "Blocks and heaps"). No allocation per
 * block; 64 bytes of record and some 15 of index for each.
 *
 * A *record* describes a block of an address, live or not. A caller that releases and acquires at
 * one address again and again keeps the number of the record, and looks it up only once. Records
 * that are not live are swept up now and then, not at once: allocators use most addresses again,
 * and then the record exists already.
 *
 * An address has one record as long as blocks of one heap live there one after the other. Only
 * where blocks of several heaps are live at once are there more, which are *shared*: from any of
 * them the others are found.
 *
 * A heap is destroyed in constant time: its blocks become stale and are swept up later, so that a
 * trace of many small destructions costs no more than its length.
 */
#ifndef ANALYZER_HEAP_LIVE_H
#define ANALYZER_HEAP_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/model.h>
#include <ttdtrace/status.h>

#include "heap/live_records.h"
#include "heap/live_table.h"

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_live_init(struct heap_live *live);
void heap_live_free(struct heap_live *live);

/**
 * Frees the index, a third of the table, until heap_live_make_index(). Meanwhile only
 * heap_live_each() may be called.
 */
void heap_live_drop_index(struct heap_live *live);

/** Builds the index again if heap_live_drop_index() has freed it. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_live_make_index(struct heap_live *live);

/** Counts a block that becomes live, or ends. */
static inline void heap_live_add(struct heap_live *live, struct heap_generation *generation,
                                 uint64_t size)
{
    generation->blocks++;
    heap_sum_add(&generation->bytes, size);
    live->count++;
    if (generation->is_nested)
        return;
    live->outer_count++;
    heap_sum_add(&live->bytes, size);
}

static inline void heap_live_subtract(struct heap_live *live, struct heap_generation *generation,
                                      uint64_t size)
{
    generation->blocks--;
    heap_sum_take(&generation->bytes, size);
    live->count--;
    if (generation->is_nested)
        return;
    live->outer_count--;
    heap_sum_take(&live->bytes, size);
}

/** Whether a record can become a live block of `heap` at once: it holds none, is the only one of
 * its address, and the heap is the one used last. */
static inline bool heap_live_is_free(const struct heap_live *live, const struct heap_block *stored,
                                     ttd_id heap)
{
    return !stored->is_held && !stored->is_shared && heap == live->last_heap;
}

/** Makes a free record live; the caller then calls heap_live_add(). Copies all members of the block
 * but those that are the table's own. */
static inline void heap_live_put(const struct heap_live *live, struct heap_block *stored,
                                 const struct heap_block *block)
{
    /* Member by member: a block that the caller has just put together needs no memory then. */
    stored->size = block->size;
    stored->event = block->event;
    stored->allocated = block->allocated;
    stored->thread = block->thread;
    stored->stack = block->stack;
    stored->heap = block->heap;
    stored->user = block->user;
    stored->life = live->last_life;
    stored->action = block->action;
    stored->api = block->api;
    stored->is_held = true;
}

/**
 * Makes a record free for a block of `heap`, and that heap the one used last.
 *
 * @param record    one of the block's address; set to the one that is free, on TTD_OK
 * @param replaced  set to the live block that was ended by that; its address is 0 if there was none
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_live_make_free(struct heap_live *live, uint32_t *record, ttd_id heap,
                                    struct heap_block *replaced);

/**
 * Makes a block live.
 *
 * @param record    one of its address; set to the one that holds it, on TTD_OK
 * @param block     copied, as by heap_live_put()
 * @param replaced  as for heap_live_make_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
static inline enum ttd_status heap_live_acquire(struct heap_live *live, uint32_t *record,
                                                const struct heap_block *block,
                                                struct heap_block *replaced)
{
    replaced->address = 0;
    if (!heap_live_is_free(live, &live->blocks[*record], block->heap)) {
        enum ttd_status status = heap_live_make_free(live, record, block->heap, replaced);
        if (status != TTD_OK)
            return status;
    }
    heap_live_put(live, &live->blocks[*record], block);
    heap_live_add(live, &live->lives[live->last_life], block->size);
    return TTD_OK;
}

/**
 * Makes a block of a list live. No other block of its heap may be live at its address.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_CORRUPT (one is live, or too many of other heaps).
 */
enum ttd_status heap_live_restore(struct heap_live *live, uint32_t record,
                                  const struct heap_block *block);

/** Ends the block of a record, which still holds it afterwards. Returns false if it is not live. */
static inline bool heap_live_release(struct heap_live *live, uint32_t record)
{
    struct heap_block *block = &live->blocks[record];
    if (!block->is_held || live->lives[block->life].has_ended)
        return false;
    block->is_held = false;
    heap_live_subtract(live, &live->lives[block->life], block->size);
    return true;
}

/** Whether a record is that of a live block. */
static inline bool heap_live_has(const struct heap_live *live, const struct heap_block *block)
{
    return block->is_held && !live->lives[block->life].has_ended;
}

/** The general case of heap_live_own(). */
uint32_t heap_live_own_slow(const struct heap_live *live, uint32_t record, ttd_id heap);

/** Returns the record of the live block that an event of `heap` means; HEAP_NO_RECORD if there is
 * none. `record` is any of the address. */
static inline uint32_t heap_live_own(const struct heap_live *live, uint32_t record, ttd_id heap)
{
    const struct heap_block *block = &live->blocks[record];
    return block->heap == heap && heap_live_has(live, block)
               ? record
               : heap_live_own_slow(live, record, heap);
}

/** The block at `address` that an event of `heap` means, of heap TTD_NONE the newest; or NULL.
 * Valid until the next change. */
struct heap_block *heap_live_find(const struct heap_live *live, uint64_t address, ttd_id heap);

/** Removes all blocks of a heap, which is destroyed at `end`; returns how many there were. */
uint64_t heap_live_destroy(struct heap_live *live, ttd_id heap, struct ttd_position end);

/**
 * Whether so many records are not live that a sweep pays. A sweep visits as many records as there
 * were at the peak, and must pay also long after it.
 */
static inline bool heap_live_is_littered(const struct heap_live *live)
{
    return live->used_records > 2 * live->count + live->block_count / 4 + HEAP_LITTER_MAX ||
           live->life_ended > (uint64_t)live->block_count + HEAP_LITTER_MAX;
}

/** Forgets records that are not live; the discard function has then seen all that were stale. */
void heap_live_sweep(struct heap_live *live);

/** Shows all stale blocks to the discard function. Records keep their numbers, so that a replay may
 * go on from here, and the index is not needed. */
void heap_live_discard_stale(struct heap_live *live);

/**
 * Steps through the live blocks in no particular order: `*cursor` is 0 at first. NULL at the end.
 */
struct heap_block *heap_live_each(const struct heap_live *live, size_t *cursor);

#endif
