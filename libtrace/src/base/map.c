/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include <string.h>

#include "base/memory.h"

/* Below SMALL_CAPACITY a map grows faster: to move its entries costs more than the memory. */
enum { FIRST_CAPACITY = 64, SMALL_CAPACITY = 4096 };

void ttd_map_init(struct ttd_map *map, const struct ttd_allocator *allocator)
{
    *map = (struct ttd_map){.allocator = allocator};
}

void ttd_map_free(struct ttd_map *map)
{
    if (map->allocator)
        ttd_release(map->allocator, map->slots);
    *map = (struct ttd_map){.allocator = map->allocator};
}

void ttd_map_clear(struct ttd_map *map)
{
    /* An empty map is clear already: maps of short chunks are cleared often. */
    if (map->count != 0)
        memset(map->slots, 0, map->capacity * sizeof *map->slots);
    map->count = 0;
}

static void map_insert(struct ttd_map *map, uint64_t key, uint64_t value)
{
    size_t mask = map->capacity - 1;
    size_t i = (size_t)ttd_map_hash(key) & mask;
    while (map->slots[i].value != 0)
        i = (i + 1) & mask;
    map->slots[i] = (struct ttd_map_slot){key, value};
    map->count++;
}

static bool map_grow(struct ttd_map *map)
{
    size_t factor = map->capacity < SMALL_CAPACITY ? 4 : 2;
    struct ttd_map larger = {.capacity = map->capacity ? map->capacity * factor : FIRST_CAPACITY,
                             .allocator = map->allocator};
    larger.slots = ttd_allocate_zeroed(map->allocator, larger.capacity * sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].value != 0)
            map_insert(&larger, map->slots[i].key, map->slots[i].value);
    ttd_release(map->allocator, map->slots);
    *map = larger;
    return true;
}

bool ttd_map_add(struct ttd_map *map, uint64_t key, uint32_t value)
{
    /* Half of the slots stay empty, so that a search finds an end soon. */
    if (map->count >= map->capacity / 2 && !map_grow(map))
        return false;
    /* A slot with 0 is free, whatever its key. */
    map_insert(map, key, (uint64_t)value + 1);
    return true;
}
