/* SPDX-License-Identifier: MIT */
/** A hash map from 64-bit keys to 32-bit numbers, emptied once per chunk. */
#ifndef TTD_BASE_MAP_H
#define TTD_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/allocator.h>

struct ttd_map_slot {
    uint64_t key;
    /** Value plus 1; 0 in an empty slot. */
    uint64_t value;
};

struct ttd_map {
    struct ttd_map_slot *slots;
    size_t capacity;
    size_t count;
    const struct ttd_allocator *allocator;
};

void ttd_map_init(struct ttd_map *map, const struct ttd_allocator *allocator);
void ttd_map_free(struct ttd_map *map);
void ttd_map_clear(struct ttd_map *map);

/** Adds a key that is not in the map. False without memory; the map is then unchanged. */
bool ttd_map_add(struct ttd_map *map, uint64_t key, uint32_t value);

/** Mixes all bits of a key. */
static inline uint64_t ttd_map_hash(uint64_t key)
{
    key ^= key >> 32;
    key *= UINT64_C(0x9E3779B97F4A7C15);
    return key ^ key >> 29;
}

/** Finds a key; false if it is not there. */
static inline bool ttd_map_find(const struct ttd_map *map, uint64_t key, uint32_t *value)
{
    if (map->capacity == 0)
        return false;
    size_t mask = map->capacity - 1;
    for (size_t i = (size_t)ttd_map_hash(key) & mask; map->slots[i].value != 0;
         i = (i + 1) & mask) {
        if (map->slots[i].key == key) {
            *value = (uint32_t)(map->slots[i].value - 1);
            return true;
        }
    }
    return false;
}

#endif
