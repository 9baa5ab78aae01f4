/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include "base/table.h"

void map_init(struct hash_map *map)
{
    *map = (struct hash_map){.key = hash_key_new()};
}

void map_free(struct hash_map *map)
{
    table_free(map->entries, map->capacity * sizeof *map->entries);
    map->entries = NULL;
    map->capacity = 0;
    map->count = 0;
}

static enum ttd_status rebuild(struct hash_map *map, size_t capacity)
{
    if (capacity > SIZE_MAX / sizeof(struct map_entry))
        return TTD_ERROR_NO_MEMORY;
    struct hash_map grown = *map;
    grown.capacity = capacity;
    grown.entries = table_resize(NULL, 0, capacity * sizeof *grown.entries);
    if (!grown.entries)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < map->capacity; i++) {
        const struct map_entry *entry = &map->entries[i];
        if (entry->inverted)
            *map_find(&grown, entry->a, entry->b) = *entry;
    }
    map_free(map);
    *map = grown;
    return TTD_OK;
}

enum ttd_status map_set(struct hash_map *map, uint64_t a, uint64_t b, uint32_t value)
{
    if (map->count >= map->capacity / 2) {
        enum ttd_status status =
            rebuild(map, map->capacity ? table_next(map->capacity, sizeof(struct map_entry)) : 64);
        if (status != TTD_OK)
            return status;
    }
    struct map_entry *entry = map_find(map, a, b);
    if (!entry->inverted)
        map->count++;
    *entry = (struct map_entry){a, b, ~value};
    return TTD_OK;
}
