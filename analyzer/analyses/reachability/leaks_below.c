/* SPDX-License-Identifier: MIT */
/* Blocks held by definitely lost groups, by call site. */
#include <stdlib.h>

#include "analyses/reachability/leaks_parts.h"
#include "base/grow.h"

/* Finds the item of a group and stack, or appends it. */
static enum ttd_status find_item(struct leaks_below *below, uint32_t group, ttd_id stack)
{
    /* 0 in the second place would take an array as long as the largest identifier. */
    uint32_t index = map_get(&below->index, stack, (uint64_t)group + 1);
    if (index != MAP_NONE) {
        below->latest = index;
        return TTD_OK;
    }
    enum ttd_status status = grow_array((void **)&below->items, &below->capacity, below->count + 1,
                                        sizeof *below->items);
    if (status == TTD_OK)
        status = grow_array((void **)&below->groups, &below->group_capacity, below->count + 1,
                            sizeof *below->groups);
    if (status == TTD_OK)
        status = map_set(&below->index, stack, (uint64_t)group + 1, (uint32_t)below->count);
    if (status != TTD_OK)
        return status;
    below->latest = below->count++;
    below->groups[below->latest] = group;
    below->items[below->latest] = (struct heap_below){.stack = stack};
    return TTD_OK;
}

enum ttd_status leaks_below_add(struct leaks_below *below, uint32_t group, ttd_id stack,
                                uint64_t size)
{
    /* Neighbours are often of one list. */
    bool is_latest = below->count && below->groups[below->latest] == group &&
                     below->items[below->latest].stack == stack;
    enum ttd_status status = is_latest ? TTD_OK : find_item(below, group, stack);
    if (status != TTD_OK)
        return status;
    struct heap_below *item = &below->items[below->latest];
    item->blocks++;
    item->bytes = heap_add(item->bytes, size);
    return TTD_OK;
}

void leaks_below_end(struct leaks_below *below, struct heap_leaks *leaks)
{
    struct heap_group *groups = leaks->kinds[HEAP_DEFINITELY_LOST].items;
    for (size_t i = 0; i < below->count; i++) {
        struct heap_group *group = &groups[below->groups[i]];
        struct heap_below *item = &below->items[i];
        item->next = group->below ? group->below->next : item;
        if (group->below)
            group->below->next = item;
        group->below = item;
    }
    leaks->below = below->items;
    map_free(&below->index);
    free(below->groups);
}
