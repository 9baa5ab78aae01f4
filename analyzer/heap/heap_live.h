/* SPDX-License-Identifier: MIT */
/**
 * The table of live blocks, by address and heap (spec, "Blocks and heaps"). It allocates nothing
 * per block; a block takes 64 bytes of record and some 8 of index.
 *
 * A *record* describes a block at an address, live or not. A caller that releases and acquires at
 * one address again and again keeps the number of the record, and looks it up only once. Records
 * that are not live are swept up now and then, not at once, since allocators reuse most addresses
 * and then find the record there.
 *
 * An address has one record while blocks of one heap live there one after the other. Where blocks
 * of several heaps are live at once, the address has several *shared* records: each of them leads
 * to the others.
 *
 * A heap is destroyed in constant time: its blocks become stale and are swept up later. So a trace
 * of many small destructions takes time proportional to its length.
 */
#ifndef ANALYZER_HEAP_HEAP_LIVE_H
#define ANALYZER_HEAP_HEAP_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/model.h>
#include <ttdtrace/reader.h>
#include <ttdtrace/status.h>

#include "base/hash_map.h"
#include "base/sort.h"

/* Sums of sizes. */

/** A sum of sizes: 128 bits, since a size may be any number that the program asked for. */
struct heap_sum {
    uint64_t high;
    uint64_t low;
};

static inline void heap_sum_add(struct heap_sum *sum, uint64_t value)
{
    if (__builtin_add_overflow(sum->low, value, &sum->low))
        sum->high++;
}

/** Adds another sum; 2^128 - 1 if the result would be larger. */
static inline void heap_sum_add_sum(struct heap_sum *sum, struct heap_sum value)
{
    uint64_t carry = __builtin_add_overflow(sum->low, value.low, &sum->low);
    bool is_over = __builtin_add_overflow(sum->high, value.high, &sum->high);
    is_over |= __builtin_add_overflow(sum->high, carry, &sum->high);
    if (is_over)
        *sum = (struct heap_sum){UINT64_MAX, UINT64_MAX};
}

/** Returns the product of two numbers. */
static inline struct heap_sum heap_product(uint64_t a, uint64_t b)
{
    struct heap_sum product = {0, 0};
    if (!__builtin_mul_overflow(a, b, &product.low))
        return product;
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX);
    uint64_t first = (a >> 32) * (b & UINT32_MAX) + (low >> 32);
    uint64_t second = (a & UINT32_MAX) * (b >> 32) + (first & UINT32_MAX);
    product.high = (a >> 32) * (b >> 32) + (first >> 32) + (second >> 32);
    product.low = second << 32 | (low & UINT32_MAX);
    return product;
}

/** Subtracts a number that was added before. */
static inline void heap_sum_take(struct heap_sum *sum, uint64_t value)
{
    if (__builtin_sub_overflow(sum->low, value, &sum->low))
        sum->high--;
}

static inline void heap_sum_subtract(struct heap_sum *sum, struct heap_sum value)
{
    heap_sum_take(sum, value.low);
    sum->high -= value.high;
}

static inline bool heap_sum_is_less(struct heap_sum a, struct heap_sum b)
{
    if (a.high == b.high)
        return a.low < b.low;
    return a.high < b.high;
}

/** Returns the sum, or UINT64_MAX if it is larger. */
static inline uint64_t heap_sum_value(struct heap_sum sum)
{
    return sum.high ? UINT64_MAX : sum.low;
}

/** Returns the sum, rounded. */
static inline double heap_sum_real(struct heap_sum sum)
{
    return (double)sum.high * 0x1p64 + (double)sum.low;
}

/* The parents of heaps: a parent is a heap whose blocks contain the blocks of another heap. */

/** Parents by heap; all zero when empty. */
struct heap_parents {
    struct hash_map by_heap;
};

void heap_parents_free(struct heap_parents *parents);

/** Adds the records of a batch; batches of other kinds are ignored. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_parents_add(struct heap_parents *parents, const struct ttd_batch *batch);

/** Copies the parents into the empty `copy`. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_parents_copy(struct heap_parents *copy, const struct heap_parents *parents);

/** Returns the parent of a heap; TTD_NONE if it takes its memory from the system. */
static inline ttd_id heap_parents_get(const struct heap_parents *parents, ttd_id heap)
{
    uint32_t parent = map_get(&parents->by_heap, heap, 0);
    return parent == MAP_NONE ? TTD_NONE : parent;
}

/* The structures of the table of live blocks: callers include heap/heap_live.h instead. */

/** A block: live, or the last one at its address. */
struct heap_block {
    /** 0 in a record that is not in use. */
    uint64_t address;
    uint64_t size;
    /** Number of the event that acquired it. */
    uint64_t event;
    /** When it was acquired: time_end of that event. */
    struct ttd_position allocated;
    ttd_id thread;
    ttd_id stack;
    ttd_id heap;
    /** Free for the observer of the replay; 0 at first, and kept by a reallocation. */
    uint32_t user;
    /** The table's own: index of its heap's generation. */
    uint32_t generation;
    /** A ttd_action: Alloc or ReAlloc. */
    uint8_t action;
    /** An enum ttd_api. */
    uint8_t api;
    /** The table's own: acquired, and not released since. It may be stale. */
    bool is_held;
    /** The table's own: its address has, or had, other records as well. */
    bool is_shared;
};

#define HEAP_NO_GENERATION UINT32_MAX

/** A value that is no ttd_id. */
#define HEAP_NO_HEAP UINT64_MAX

/** A value that is the number of no record. */
#define HEAP_NO_RECORD UINT32_MAX

/** The largest number of blocks that are live at one address. */
#define HEAP_SHARED_MAX 16

/** Smallest number of dead records and destroyed heaps that makes a sweep pay, however few blocks
 * are live. */
#define HEAP_LITTER_MAX 4096

/** A generation of a heap: from its first block to its destruction. */
struct heap_generation {
    /** In use: the heap. Unused: the next unused generation. */
    uint32_t heap;
    bool has_ended;
    /** The heap has a parent. */
    bool is_nested;
    uint64_t blocks;
    struct heap_sum bytes;
    /** Position where it ended. */
    struct ttd_position end;
};

/** Receives a stale block before it is forgotten. Its heap was destroyed at `end`. */
typedef void (*heap_discard_function)(void *context, const struct heap_block *block,
                                      struct ttd_position end);

struct heap_live {
    /**
     * The index. The low bits of an address's hash give the slot where it belongs; as many low bits
     * of the slot are 1 more than the number of the record, the others are bits of the hash. 0 in
     * an empty slot.
     */
    uint32_t *slots;
    size_t slot_capacity;
    /** Records in use: live, stale or neither. */
    size_t used_records;
    /** Number of live blocks. */
    uint64_t count;
    /** Number and bytes of the live blocks of heaps without a parent. */
    uint64_t outer_count;
    struct heap_sum bytes;
    struct hash_key key;

    /** The records: room for three in every four slots. */
    struct heap_block *blocks;
    uint32_t block_count;
    /** Bytes of the records that the system was asked to map. */
    size_t mapped;
    /** Records below block_count that are not in use, last freed first. */
    uint32_t *unused;
    uint32_t unused_count;

    struct heap_generation *generations;
    size_t generation_capacity;
    uint32_t generation_count;
    uint32_t generation_unused;
    /** Generations that ended since the last sweep. */
    uint32_t generation_ended;
    struct hash_map generation_of_heap;
    /** The heap that was asked for last, and its generation; HEAP_NO_HEAP if there is none. */
    uint64_t last_heap;
    uint32_t last_generation;

    heap_discard_function discard;
    void *discard_context;

    /** The parents of heaps. Each is known before the first block of its heap. */
    struct heap_parents parents;
};

/* The index of the table of live blocks: it finds the record of an address, or adds one. All that a
 * lookup needs in the common case is inline. Callers include heap/heap_live.h instead. */

/** The hash of an address; determines its slot. */
static inline uint32_t heap_live_hash(const struct heap_live *live, uint64_t address)
{
    return (uint32_t)hash_value(live->key, address);
}

/** Prefetches the slot of an address that will be looked up soon. Always inlined, because gcc
 * removes calls of a function that does nothing but prefetch. */
static inline __attribute__((always_inline)) void heap_live_prefetch(const struct heap_live *live,
                                                                     uint32_t hash)
{
    __builtin_prefetch(&live->slots[hash & (live->slot_capacity - 1)], 1);
}

/** Makes room for `count` records. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_live_reserve(struct heap_live *live, uint64_t count);

/** The bits of a hash, or of a slot, that give a slot, or a record. */
static inline uint32_t heap_live_slot_mask(const struct heap_live *live)
{
    return (uint32_t)live->slot_capacity - 1;
}

/** Returns the record in a slot; HEAP_NO_RECORD in an empty one. */
static inline uint32_t heap_live_slot_record(const struct heap_live *live, size_t slot)
{
    return (live->slots[slot] & heap_live_slot_mask(live)) - 1;
}

_Static_assert(HEAP_NO_RECORD == UINT32_MAX, "1 less than the record of an empty slot");

/** Prefetches the record in a slot. Always inlined, because gcc removes calls of a function that
 * does nothing but prefetch. */
static inline __attribute__((always_inline)) void
heap_live_prefetch_record(const struct heap_live *live, size_t slot)
{
    uint32_t record = heap_live_slot_record(live, slot);
    __builtin_prefetch(&live->blocks[record == HEAP_NO_RECORD ? 0 : record], 1);
}

/** Enters a record into the empty slot where it belongs. */
static inline void heap_live_fill_slot(struct heap_live *live, size_t slot, uint32_t hash,
                                       uint32_t record)
{
    live->slots[slot] = (hash & ~heap_live_slot_mask(live)) | (record + 1);
}

/** Adds the record of an address that has none, in the slot where it belongs. The caller has made
 * room for it. */
static inline uint32_t heap_live_add_record(struct heap_live *live, size_t slot, uint64_t address,
                                            uint32_t hash)
{
    uint32_t record = live->unused_count ? live->unused[--live->unused_count] : live->block_count++;
    live->blocks[record].address = address;
    live->blocks[record].is_held = false;
    live->blocks[record].is_shared = false;
    heap_live_fill_slot(live, slot, hash, record);
    live->used_records++;
    return record;
}

/** Returns the first slot from one on that is empty, or may hold a record of a hash: the record may
 * be of another address. */
static inline size_t heap_live_next_slot(const struct heap_live *live, size_t slot, uint32_t hash)
{
    uint32_t mask = heap_live_slot_mask(live);
    while (live->slots[slot] && (live->slots[slot] ^ hash) & ~mask)
        slot = (slot + 1) & mask;
    return slot;
}

/** Returns the same from the slot on where the hash belongs. */
static inline size_t heap_live_find_slot(const struct heap_live *live, uint32_t hash)
{
    return heap_live_next_slot(live, hash & heap_live_slot_mask(live), hash);
}

/** The general case of heap_live_record_at(). */
uint32_t heap_live_record_slow(struct heap_live *live, uint64_t address, uint32_t hash);

/** heap_live_record(), given a result of heap_live_find_slot(), of now or when there were fewer
 * records. There must have been room already: see heap_live_reserve(). */
static inline uint32_t heap_live_record_at(struct heap_live *live, uint64_t address, uint32_t hash,
                                           size_t slot)
{
    uint32_t record = heap_live_slot_record(live, slot);
    if (record == HEAP_NO_RECORD)
        return heap_live_add_record(live, slot, address, hash);
    return live->blocks[record].address == address ? record
                                                   : heap_live_record_slow(live, address, hash);
}

/** Returns the slot of a record of an address, or the empty one where it belongs. `hash` is
 * heap_live_hash(). */
static inline size_t heap_live_probe(const struct heap_live *live, uint64_t address, uint32_t hash)
{
    size_t slot = heap_live_find_slot(live, hash);
    while (live->slots[slot] && live->blocks[heap_live_slot_record(live, slot)].address != address)
        slot = heap_live_next_slot(live, (slot + 1) & heap_live_slot_mask(live), hash);
    return slot;
}

/** Returns a record of an address; HEAP_NO_RECORD if there is none. `hash` is heap_live_hash(). */
static inline uint32_t heap_live_known_record(const struct heap_live *live, uint64_t address,
                                              uint32_t hash)
{
    return heap_live_slot_record(live, heap_live_probe(live, address, hash));
}

/**
 * Returns a record of an address (not 0). Adds one if there is none.
 *
 * @param hash    heap_live_hash() of it
 * @param record  index in live->blocks, the same until heap_live_sweep(); set on TTD_OK
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
static inline enum ttd_status heap_live_record(struct heap_live *live, uint64_t address,
                                               uint32_t hash, uint32_t *record)
{
    enum ttd_status status = heap_live_reserve(live, live->used_records + 1);
    *record = 0;
    if (status == TTD_OK)
        *record = heap_live_record_at(live, address, hash, heap_live_find_slot(live, hash));
    return status;
}

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_live_init(struct heap_live *live);
void heap_live_free(struct heap_live *live);

/**
 * Frees the index, a tenth of the table, until heap_live_make_index(). Meanwhile only
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

/** Whether a record can become a live block of `heap` at once: it holds no block, is the only
 * record of its address, and the heap is the one used last. */
static inline bool heap_live_is_free(const struct heap_live *live, const struct heap_block *stored,
                                     ttd_id heap)
{
    return !stored->is_held && !stored->is_shared && heap == live->last_heap;
}

/** Makes a free record live; the caller then calls heap_live_add(). Copies all members of the block
 * except those that are the table's own. */
static inline void heap_live_put(const struct heap_live *live, struct heap_block *stored,
                                 const struct heap_block *block)
{
    /* Member by member: so the compiler keeps a block that was just put together in registers. */
    stored->size = block->size;
    stored->event = block->event;
    stored->allocated = block->allocated;
    stored->thread = block->thread;
    stored->stack = block->stack;
    stored->heap = block->heap;
    stored->user = block->user;
    stored->generation = live->last_generation;
    stored->action = block->action;
    stored->api = block->api;
    stored->is_held = true;
}

/**
 * Frees a record for a block of `heap`, and makes that heap the one used last.
 *
 * @param record    any record of the address; set to the free one on TTD_OK
 * @param replaced  set to the live block that this ended; its address is 0 if there was none
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_live_make_free(struct heap_live *live, uint32_t *record, ttd_id heap,
                                    struct heap_block *replaced);

/**
 * Makes a block live.
 *
 * @param record    any record of its address; set to the one that holds it on TTD_OK
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
    heap_live_add(live, &live->generations[live->last_generation], block->size);
    return TTD_OK;
}

/**
 * Makes a block of a list live. No other block of its heap may be live at its address.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_CORRUPT (one is live, or too many of other heaps).
 */
enum ttd_status heap_live_restore(struct heap_live *live, uint32_t record,
                                  const struct heap_block *block);

/** Ends the block of a record, whose members can still be read. Returns false if it is not live. */
static inline bool heap_live_release(struct heap_live *live, uint32_t record)
{
    struct heap_block *block = &live->blocks[record];
    if (!block->is_held || live->generations[block->generation].has_ended)
        return false;
    block->is_held = false;
    heap_live_subtract(live, &live->generations[block->generation], block->size);
    return true;
}

/** Returns whether a record holds a live block. */
static inline bool heap_live_has(const struct heap_live *live, const struct heap_block *block)
{
    return block->is_held && !live->generations[block->generation].has_ended;
}

/** The general case of heap_live_own(). */
uint32_t heap_live_own_slow(const struct heap_live *live, uint32_t record, ttd_id heap);

/** Returns the record of the live block that an event of `heap` refers to; HEAP_NO_RECORD if there
 * is none. `record` is any record of the address. */
static inline uint32_t heap_live_own(const struct heap_live *live, uint32_t record, ttd_id heap)
{
    const struct heap_block *block = &live->blocks[record];
    return block->heap == heap && heap_live_has(live, block)
               ? record
               : heap_live_own_slow(live, record, heap);
}

/** Returns the live block at `address` that an event of `heap` refers to, with TTD_NONE the newest
 * one; NULL if there is none. Valid until the next change. */
struct heap_block *heap_live_find(const struct heap_live *live, uint64_t address, ttd_id heap);

/** Removes all blocks of a heap that is destroyed at `end`. Returns their number. */
uint64_t heap_live_destroy(struct heap_live *live, ttd_id heap, struct ttd_position end);

/**
 * Whether enough records are not live for a sweep to pay. A sweep visits as many records as there
 * were at the peak, and must still pay long after the peak.
 */
static inline bool heap_live_is_littered(const struct heap_live *live)
{
    return live->used_records > 2 * live->count + live->block_count / 4 + HEAP_LITTER_MAX ||
           live->generation_ended > (uint64_t)live->block_count + HEAP_LITTER_MAX;
}

/** Forgets records that are not live, after showing the stale ones to the discard function. Takes
 * time proportional to all records: see heap_live_is_littered(). Not without the index. */
void heap_live_sweep(struct heap_live *live);

/** Shows all stale blocks to the discard function. Records keep their numbers, so a replay may go
 * on from here. Works without the index. */
void heap_live_discard_stale(struct heap_live *live);

/**
 * Returns the next live block, in no particular order; NULL at the end. `*cursor` is 0 at first.
 */
struct heap_block *heap_live_each(const struct heap_live *live, size_t *cursor);

/* Sorting blocks by address, and blocks of one address by heap: a block comes after the block that
 * contains it, since a parent has a lower id than its heaps. */

/** The key of a block in an array. */
static inline struct sort_key heap_block_key(const struct heap_block *blocks,
                                             const struct heap_block *block)
{
    return (struct sort_key){block->address, (uint32_t)(block - blocks)};
}

/**
 * Sorts keys of blocks, in time proportional to their number.
 *
 * @param spare  room for `count` keys
 */
void heap_sort_blocks(const struct heap_block *blocks, struct sort_key *keys,
                      struct sort_key *spare, size_t count);

/** Compares two blocks for qsort(). */
int heap_compare_blocks(const void *a, const void *b);

/* Locating the block that an address belongs to. */

/** Returns the last address of a block; the last of the address space if a damaged trace has a size
 * that reaches beyond it. A block of no bytes has its own address. */
static inline uint64_t heap_block_last(const struct heap_block *block)
{
    uint64_t reach = block->size ? block->size - 1 : 0;
    return reach > UINT64_MAX - block->address ? UINT64_MAX : block->address + reach;
}

/** Whether `block` covers an address from `first` to `last`. A block of no bytes covers its own
 * address. */
static inline bool heap_block_covers(const struct heap_block *block, uint64_t first, uint64_t last)
{
    uint64_t reach = block->size ? block->size - 1 : 0;
    return block->address <= last && (block->address >= first || first - block->address <= reach);
}

/**
 * Returns the live block that covers `address`, the innermost one if they are nested; NULL if there
 * is none. Looks at every block.
 */
const struct heap_block *heap_live_containing(const struct heap_live *live, uint64_t address);

#endif
