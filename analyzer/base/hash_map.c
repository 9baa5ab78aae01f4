/* SPDX-License-Identifier: MIT */
#include "base/hash_map.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/table.h"

struct hash_key hash_key_new(void)
{
    struct hash_key key;
    if (getentropy(&key, sizeof key) != 0) {
        struct timespec now = {0, 0};
        clock_gettime(CLOCK_MONOTONIC, &now);
        key.add = (uint64_t)now.tv_nsec ^ (uintptr_t)&key;
        key.multiply = hash_value((struct hash_key){key.add, 1}, (uint64_t)now.tv_sec);
    }
    key.multiply |= 1;
    return key;
}

/* Elements of the array for each pair in the table: identifiers are dense, but not all of them need
 * be keys. So the memory grows with the pairs, never with the value of an identifier. */
#define DIRECT_PER_PAIR 16
#define DIRECT_MIN      64

void map_init(struct hash_map *map)
{
    *map = (struct hash_map){.key = hash_key_new()};
}

void map_free(struct hash_map *map)
{
    table_free(map->slots, map->capacity * sizeof *map->slots);
    table_free(map->direct, map->direct_capacity * sizeof *map->direct);
    *map = (struct hash_map){.key = map->key};
}

static enum ttd_status hash_map_rebuild(struct hash_map *map, size_t capacity)
{
    if (capacity > SIZE_MAX / sizeof(struct map_slot))
        return TTD_ERROR_NO_MEMORY;
    struct hash_map grown = *map;
    grown.capacity = capacity;
    grown.slots = table_resize(NULL, 0, capacity * sizeof *grown.slots);
    if (!grown.slots)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < map->capacity; i++) {
        const struct map_slot *slot = &map->slots[i];
        if (slot->inverted)
            *map_find(&grown, slot->a, slot->b) = *slot;
    }
    table_give_back(map->slots, map->capacity * sizeof *map->slots);
    *map = grown;
    return TTD_OK;
}

/* Sets the value of a pair in the slots. */
static enum ttd_status hash_map_set_slot(struct hash_map *map, uint64_t a, uint64_t b,
                                         uint32_t value)
{
    if (map->slot_count >= map->capacity / 2) {
        enum ttd_status status = hash_map_rebuild(
            map, map->capacity ? table_next(map->capacity, sizeof(struct map_slot)) : 64);
        if (status != TTD_OK)
            return status;
    }
    struct map_slot *slot = map_find(map, a, b);
    bool is_new = !slot->inverted;
    map->slot_count += is_new;
    map->count += is_new;
    *slot = (struct map_slot){a, b, ~value};
    return TTD_OK;
}

/* Sets the value of the pair (a, 0) in the array. Without memory for a larger array it has no
 * element for the pair. */
static bool hash_map_set_direct(struct hash_map *map, uint64_t a, uint32_t value)
{
    if (a >= map->direct_capacity) {
        size_t capacity = map->direct_capacity ? map->direct_capacity : DIRECT_MIN;
        while (capacity <= a)
            capacity = table_next(capacity, sizeof *map->direct);
        uint32_t *direct = table_resize(map->direct, map->direct_capacity * sizeof *direct,
                                        capacity * sizeof *direct);
        if (!direct)
            return false;
        map->direct = direct;
        map->direct_capacity = capacity;
    }
    map->count += !map->direct[a];
    map->direct[a] = ~value;
    return true;
}

/* Whether the pair belongs into the array. A pair that is in the slots stays there. */
static bool hash_map_is_direct(const struct hash_map *map, uint64_t a, uint64_t b)
{
    return !b && a < DIRECT_PER_PAIR * (map->count + DIRECT_MIN / DIRECT_PER_PAIR) &&
           (!map->capacity || !map_find(map, a, b)->inverted);
}

enum ttd_status map_set(struct hash_map *map, uint64_t a, uint64_t b, uint32_t value)
{
    if (hash_map_is_direct(map, a, b) && hash_map_set_direct(map, a, value))
        return TTD_OK;
    return hash_map_set_slot(map, a, b, value);
}

/* Copies `size` bytes of a table; NULL without memory, or if there are none. */
static void *hash_map_copy_table(const void *table, size_t size)
{
    void *copy = size ? table_resize(NULL, 0, size) : NULL;
    return copy ? memcpy(copy, table, size) : NULL;
}

enum ttd_status map_copy(struct hash_map *copy, const struct hash_map *map)
{
    size_t direct_size = map->direct_capacity * sizeof *map->direct;
    size_t slots_size = map->capacity * sizeof *map->slots;
    void *direct = hash_map_copy_table(map->direct, direct_size);
    void *slots = hash_map_copy_table(map->slots, slots_size);
    if ((direct_size && !direct) || (slots_size && !slots)) {
        if (direct)
            table_free(direct, direct_size);
        if (slots)
            table_free(slots, slots_size);
        return TTD_ERROR_NO_MEMORY;
    }
    *copy = *map;
    copy->direct = direct;
    copy->slots = slots;
    return TTD_OK;
}
