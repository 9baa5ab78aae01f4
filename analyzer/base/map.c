/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include "base/table.h"

void map_init(struct hash_map *map)
{
    *map = (struct hash_map){.key = hash_key_new()};
}

void map_free(struct hash_map *map)
{
    table_free(map->slots, map->capacity * sizeof *map->slots);
    map->slots = NULL;
    map->capacity = 0;
    map->count = 0;
}

static enum ttd_status rebuild(struct hash_map *map, size_t capacity)
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

enum ttd_status map_set(struct hash_map *map, uint64_t a, uint64_t b, uint32_t value)
{
    if (map->count >= map->capacity / 2) {
        enum ttd_status status =
            rebuild(map, map->capacity ? table_next(map->capacity, sizeof(struct map_slot)) : 64);
        if (status != TTD_OK)
            return status;
    }
    struct map_slot *slot = map_find(map, a, b);
    if (!slot->inverted)
        map->count++;
    *slot = (struct map_slot){a, b, ~value};
    return TTD_OK;
}

enum ttd_status map_copy(struct hash_map *copy, const struct hash_map *map)
{
    struct map_slot *slots = NULL;
    if (map->capacity)
        slots = table_resize(NULL, 0, map->capacity * sizeof *slots);
    if (map->capacity && !slots)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < map->capacity; i++)
        slots[i] = map->slots[i];
    *copy = *map;
    copy->slots = slots;
    return TTD_OK;
}
