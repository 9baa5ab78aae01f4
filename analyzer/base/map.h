/* SPDX-License-Identifier: MIT */
/** A hash table from pairs of numbers to a small number. Entries are never removed. */
#ifndef ANALYZER_BASE_MAP_H
#define ANALYZER_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include <ttdtrace/status.h>

#include "base/hash.h"

/** Value of a key that is not there. */
#define MAP_NONE UINT32_MAX

typedef struct map_entry {
    uint64_t a;
    uint64_t b;
    /** Complement of the value, so that an entry of zeroes has MAP_NONE: it is empty. */
    uint32_t inverted;
} map_entry;

/** All zero but for `key` when empty: see map_init(). */
typedef struct hash_map {
    map_entry *entries;
    size_t capacity;
    size_t count;
    hash_key key;
} hash_map;

void map_init(hash_map *map);
void map_free(hash_map *map);

/** The entry of (a, b), or the empty one where it belongs. Needs a capacity. */
static inline map_entry *map_find(const hash_map *map, uint64_t a, uint64_t b)
{
    size_t mask = map->capacity - 1;
    size_t i = (size_t)hash_value(map->key, a ^ b * map->key.multiply) & mask;
    while (map->entries[i].inverted && (map->entries[i].a != a || map->entries[i].b != b))
        i = (i + 1) & mask;
    return &map->entries[i];
}

/** The value of (a, b), or MAP_NONE. */
static inline uint32_t map_get(const hash_map *map, uint64_t a, uint64_t b)
{
    return map->capacity ? ~map_find(map, a, b)->inverted : MAP_NONE;
}

/**
 * Sets the value of (a, b); `value` must not be MAP_NONE.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
ttd_status map_set(hash_map *map, uint64_t a, uint64_t b, uint32_t value);

#endif
