/* SPDX-License-Identifier: MIT */
#include "heap/groups.h"

#include <stdlib.h>

#include "base/grow.h"

#define RECENT_MIN 64

void heap_groups_init(heap_groups *groups)
{
    *groups = (heap_groups){.has_stacks = true};
    map_init(&groups->by_key);
}

void heap_groups_free(heap_groups *groups)
{
    free(groups->items);
    free(groups->recent);
    map_free(&groups->by_key);
    *groups = (heap_groups){0};
}

/* Whether a group has that key; there may be no such group. */
static inline bool has_key(const heap_groups *groups, uint32_t index, heap_key key)
{
    return index < groups->count && groups->items[index].key.stack == key.stack &&
           groups->items[index].key.other == key.other;
}

static inline uint32_t *recent_of(const heap_groups *groups, heap_key key)
{
    return &groups->recent[(key.stack ^ key.other) & (groups->recent_capacity - 1)];
}

/* Makes room for one more group among the recent ones: all begin with the first group. */
static ttd_status reserve_recent(heap_groups *groups)
{
    if (groups->count + 1 < groups->recent_capacity)
        return TTD_OK;
    size_t capacity = groups->recent_capacity ? 2 * groups->recent_capacity : RECENT_MIN;
    uint32_t *recent = calloc(capacity, sizeof *recent);
    if (!recent)
        return TTD_ERROR_NO_MEMORY;
    free(groups->recent);
    groups->recent = recent;
    groups->recent_capacity = capacity;
    return TTD_OK;
}

/* A new group of nothing, with the key, API and position of its first block. */
static ttd_status add_group(heap_groups *groups, const heap_group *first)
{
    heap_key key = first->key;
    ttd_status status = grow_array((void **)&groups->items, &groups->capacity, groups->count + 1,
                                   sizeof *groups->items);
    if (status == TTD_OK)
        status = reserve_recent(groups);
    if (status == TTD_OK)
        status = map_set(&groups->by_key, key.stack, key.other, (uint32_t)groups->count);
    if (status != TTD_OK)
        return status;
    groups->latest = (uint32_t)groups->count;
    groups->items[groups->count++] =
        (heap_group){.key = key, .first = first->first, .last = first->last, .api = first->api};
    return TTD_OK;
}

/* Makes the group of a key the latest; false if there is none. */
static inline bool find_group(heap_groups *groups, heap_key key)
{
    if (!groups->count)
        return false;
    uint32_t *recent = recent_of(groups, key);
    groups->latest = *recent;
    if (has_key(groups, *recent, key))
        return true;
    groups->latest = map_get(&groups->by_key, key.stack, key.other);
    if (groups->latest == MAP_NONE)
        return false;
    *recent = groups->latest;
    return true;
}

static heap_key key_in(const heap_groups *groups, const heap_block *block)
{
    heap_key key = heap_key_of_block(groups->split, block);
    if (!groups->has_stacks)
        key.stack = TTD_NONE;
    return key;
}

ttd_status heap_groups_add(heap_groups *groups, const heap_block *block)
{
    heap_key key = key_in(groups, block);
    if (!find_group(groups, key)) {
        heap_group first = {
            .key = key, .first = block->allocated, .last = block->allocated, .api = block->api};
        ttd_status status = add_group(groups, &first);
        if (status != TTD_OK)
            return status;
    }
    heap_group *group = &groups->items[groups->latest];
    group->blocks++;
    group->bytes = heap_add(group->bytes, block->size);
    heap_group_widen(group, block->allocated);
    groups->blocks++;
    groups->bytes = heap_add(groups->bytes, block->size);
    return TTD_OK;
}

void heap_groups_subtract(heap_groups *groups, const heap_block *block)
{
    ttd_position at = block->allocated;
    if (!find_group(groups, key_in(groups, block)))
        return;
    heap_group *group = &groups->items[groups->latest];
    if (ttd_position_compare(at, group->first) == 0 || ttd_position_compare(at, group->last) == 0) {
        group->first = ttd_position_invalid();
        group->last = ttd_position_min();
    }
    group->blocks--;
    group->bytes -= block->size;
    groups->blocks--;
    groups->bytes -= block->size;
}

static void merge(void *into, const void *from)
{
    heap_group *sum = into;
    const heap_group *group = from;
    sum->blocks += group->blocks;
    sum->bytes = heap_add(sum->bytes, group->bytes);
    heap_group_widen(sum, group->first);
    heap_group_widen(sum, group->last);
}

ttd_status heap_groups_add_sum(heap_groups *groups, const heap_group *sum)
{
    ttd_status status = find_group(groups, sum->key) ? TTD_OK : add_group(groups, sum);
    if (status != TTD_OK)
        return status;
    merge(&groups->items[groups->latest], sum);
    groups->blocks += sum->blocks;
    groups->bytes = heap_add(groups->bytes, sum->bytes);
    return TTD_OK;
}

static int compare(const void *a, const void *b)
{
    const heap_group *x = a;
    const heap_group *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->blocks != y->blocks)
        return x->blocks > y->blocks ? -1 : 1;
    return heap_key_compare(x->key, y->key);
}

void heap_groups_sort(heap_groups *groups)
{
    if (groups->count)
        qsort(groups->items, groups->count, sizeof *groups->items, compare);
    map_free(&groups->by_key);
    free(groups->recent);
    groups->recent = NULL;
    groups->recent_capacity = 0;
}

ttd_status heap_groups_join(heap_groups *groups)
{
    hash_map by_other;
    map_init(&by_other);
    ttd_status status = TTD_OK;
    size_t count = 0;
    for (size_t i = 0; i < groups->count && status == TTD_OK; i++) {
        heap_group *group = &groups->items[i];
        uint32_t index = map_get(&by_other, group->key.other, 0);
        if (index != MAP_NONE) {
            merge(&groups->items[index], group);
            continue;
        }
        status = map_set(&by_other, group->key.other, 0, (uint32_t)count);
        group->key.stack = TTD_NONE;
        groups->items[count++] = *group;
    }
    map_free(&by_other);
    groups->count = count;
    heap_groups_sort(groups);
    return status;
}

static heap_amount amount(const void *item)
{
    const heap_group *group = item;
    return (heap_amount){group->bytes, group->bytes, group->blocks};
}

static void recount(void *owner)
{
    heap_groups *groups = owner;
    groups->blocks = 0;
    groups->bytes = 0;
    for (size_t i = 0; i < groups->count; i++) {
        groups->blocks += groups->items[i].blocks;
        groups->bytes = heap_add(groups->bytes, groups->items[i].bytes);
    }
}

heap_rows heap_groups_rows(heap_groups *groups)
{
    return (heap_rows){.owner = groups,
                       .items = groups->items,
                       .count = &groups->count,
                       .size = sizeof *groups->items,
                       .merge = merge,
                       .compare = compare,
                       .amount = amount,
                       .recount = recount};
}
