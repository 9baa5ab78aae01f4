/* SPDX-License-Identifier: MIT */
#include "heap/ordinal_map.h"

#include <stdlib.h>

#include "base/grow.h"

/* No chunk is there. */
#define NO_CHUNK UINT64_MAX

/* Addresses that are looked up together. */
#define TOGETHER 128

void heap_ordinal_map_init(struct heap_ordinal_map *ordinals)
{
    *ordinals = (struct heap_ordinal_map){.chunk = NO_CHUNK};
}

void heap_ordinal_map_free(struct heap_ordinal_map *ordinals)
{
    free(ordinals->records);
    heap_ordinal_map_init(ordinals);
}

/* Ordinals are valid in one chunk, and records until the next sweep. */
void heap_ordinal_map_begin(struct heap_ordinal_map *ordinals, struct heap_live *live,
                            uint64_t chunk)
{
    if (ordinals->chunk == chunk)
        return;
    if (heap_live_is_littered(live))
        heap_live_sweep(live);
    ordinals->count = 0;
    ordinals->chunk = chunk;
}

/* Fetches all slots, then all records, then looks up: the cache misses of a group overlap. */
static enum ttd_status ordinals_find_records(struct heap_live *live, const uint64_t *addresses,
                                             size_t count, uint32_t *records)
{
    uint32_t hashes[TOGETHER];
    size_t slots[TOGETHER];
    enum ttd_status status = heap_live_reserve(live, live->used_records + count);
    if (status != TTD_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        hashes[i] = heap_live_hash(live, addresses[i]);
        heap_live_prefetch(live, hashes[i]);
    }
    for (size_t i = 0; i < count; i++) {
        slots[i] = heap_live_find_slot(live, hashes[i]);
        uint32_t record = live->slots[slots[i]].record;
        __builtin_prefetch(&live->blocks[record - (record != 0)], 1);
    }
    for (size_t i = 0; i < count; i++)
        records[i] = heap_live_record_at(live, addresses[i], hashes[i], slots[i]);
    return TTD_OK;
}

/* Records can be looked up ahead of the events, because no event changes the record of an
 * address. */
enum ttd_status heap_ordinal_map_add(struct heap_ordinal_map *ordinals, struct heap_live *live,
                                     const struct ttd_batch *batch)
{
    size_t end = batch->first_ordinal + batch->address_count;
    if (ordinals->count < batch->first_ordinal)
        return TTD_ERROR_ARGUMENT;
    enum ttd_status status = grow_array((void **)&ordinals->records, &ordinals->capacity, end,
                                        sizeof *ordinals->records);
    while (status == TTD_OK && ordinals->count < end) {
        size_t remaining = end - ordinals->count;
        size_t count = remaining < TOGETHER ? remaining : TOGETHER;
        status =
            ordinals_find_records(live, batch->addresses + (ordinals->count - batch->first_ordinal),
                                  count, ordinals->records + ordinals->count);
        ordinals->count += status == TTD_OK ? count : 0;
    }
    return status;
}
