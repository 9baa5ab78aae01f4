/* SPDX-License-Identifier: MIT */
/** The index of the table of live blocks: it finds the record of an address, or adds one. All that
 * a lookup needs in the common case is inline. See heap/live.h, which callers include. */
#ifndef ANALYZER_HEAP_LIVE_RECORDS_H
#define ANALYZER_HEAP_LIVE_RECORDS_H

#include <ttdtrace/status.h>

#include "heap/live_table.h"

/** The hash of an address, which determines its slot. */
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

/** Adds the record of an address that has none, in the slot where it belongs. The caller has made
 * room for it. */
static inline uint32_t heap_live_add_record(struct heap_live *live, struct heap_slot *slot,
                                            uint64_t address, uint32_t hash)
{
    uint32_t record = live->unused_count ? live->unused[--live->unused_count] : live->block_count++;
    live->blocks[record].address = address;
    live->blocks[record].is_held = false;
    live->blocks[record].is_shared = false;
    *slot = (struct heap_slot){hash, record + 1};
    live->used_records++;
    return record;
}

/** Returns the first slot that holds this hash, or the empty one where it belongs. The slot may be
 * that of another address of the same hash. */
static inline size_t heap_live_find_slot(const struct heap_live *live, uint32_t hash)
{
    size_t mask = live->slot_capacity - 1;
    size_t slot = hash & mask;
    while (live->slots[slot].record && live->slots[slot].hash != hash)
        slot = (slot + 1) & mask;
    return slot;
}

/** The general case of heap_live_record_at(). */
uint32_t heap_live_record_slow(struct heap_live *live, uint64_t address, uint32_t hash);

/** heap_live_record(), given what heap_live_find_slot() returned, now or when there were fewer
 * records. There must have been room already: see heap_live_reserve(). */
static inline uint32_t heap_live_record_at(struct heap_live *live, uint64_t address, uint32_t hash,
                                           size_t slot_index)
{
    struct heap_slot *slot = &live->slots[slot_index];
    if (!slot->record)
        return heap_live_add_record(live, slot, address, hash);
    if (slot->hash != hash || live->blocks[slot->record - 1].address != address)
        return heap_live_record_slow(live, address, hash);
    return slot->record - 1;
}

/**
 * Returns a record of an address, which is not 0. Adds one if there is none.
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

#endif
