/* SPDX-License-Identifier: MIT */
/** A table from pairs of numbers to a small number. Keys are never removed. Identifiers are dense
 * and found in an array; all other pairs by their hash. */
#ifndef ANALYZER_BASE_HASH_MAP_H
#define ANALYZER_BASE_HASH_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <ttdtrace/status.h>

/* Keyed hashing, so that a crafted trace cannot choose which values collide. */

/** A random key. */
struct hash_key {
    uint64_t add;
    uint64_t multiply;
};

/** Makes a random key. */
struct hash_key hash_key_new(void);

/** Hashes a value. All bits of the result are usable, the low ones as well. */
static inline uint64_t hash_value(struct hash_key key, uint64_t value)
{
    value = (value ^ key.add) * key.multiply;
    value ^= value >> 32;
    value *= UINT64_C(0x9E3779B97F4A7C15);
    return value ^ value >> 29;
}

/** The value of a key that is not in the table. */
#define MAP_NONE UINT32_MAX

struct map_slot {
    uint64_t a;
    uint64_t b;
    /** Complement of the value. A slot of zeros is empty, since its value is MAP_NONE. */
    uint32_t inverted;
};

/** All zero but for `key` when empty; map_init() makes the key. */
struct hash_map {
    /** The pairs (a, 0) with a small `a`, by `a`: complements of the values, as in slots. */
    uint32_t *direct;
    size_t direct_capacity;
    /** All other pairs. */
    struct map_slot *slots;
    size_t capacity;
    size_t slot_count;
    /** Pairs in both. */
    size_t count;
    struct hash_key key;
};

void map_init(struct hash_map *map);
void map_free(struct hash_map *map);

/** Finds the slot of (a, b), or the empty slot where it belongs. The capacity must not be 0. */
static inline struct map_slot *map_find(const struct hash_map *map, uint64_t a, uint64_t b)
{
    size_t mask = map->capacity - 1;
    size_t i = (size_t)hash_value(map->key, a ^ b * map->key.multiply) & mask;
    while (map->slots[i].inverted && (map->slots[i].a != a || map->slots[i].b != b))
        i = (i + 1) & mask;
    return &map->slots[i];
}

/** Looks up the value of (a, b); MAP_NONE if there is none. */
static inline uint32_t map_get(const struct hash_map *map, uint64_t a, uint64_t b)
{
    if (!b && a < map->direct_capacity && map->direct[a])
        return ~map->direct[a];
    return map->capacity ? ~map_find(map, a, b)->inverted : MAP_NONE;
}

/**
 * Sets the value of (a, b); `value` must not be MAP_NONE.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status map_set(struct hash_map *map, uint64_t a, uint64_t b, uint32_t value);

/** Copies a map into `copy` (all zero). @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status map_copy(struct hash_map *copy, const struct hash_map *map);

#endif
