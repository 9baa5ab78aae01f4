/* SPDX-License-Identifier: MIT */
#include "heap/groups.h"

#include <stdlib.h>

#include "base/grow.h"

void heap_groups_init(heap_groups *groups)
{
    *groups = (heap_groups){.has_stacks = true};
    map_init(&groups->by_key);
}

void heap_groups_free(heap_groups *groups)
{
    free(groups->items);
    map_free(&groups->by_key);
    *groups = (heap_groups){0};
}

static ttd_status group_of(heap_groups *groups, const heap_block *block, heap_group **group)
{
    heap_key key = heap_key_of_block(groups->split, block);
    if (!groups->has_stacks)
        key.stack = TTD_NONE;
    uint32_t index = map_get(&groups->by_key, key.stack, key.other);
    if (index != MAP_NONE) {
        *group = &groups->items[index];
        return TTD_OK;
    }
    ttd_status status = grow_array((void **)&groups->items, &groups->capacity, groups->count + 1,
                                   sizeof *groups->items);
    if (status == TTD_OK)
        status = map_set(&groups->by_key, key.stack, key.other, (uint32_t)groups->count);
    if (status != TTD_OK)
        return status;
    *group = &groups->items[groups->count++];
    **group = (heap_group){
        .key = key, .first = block->allocated, .last = block->allocated, .api = block->api};
    return TTD_OK;
}

static void widen(heap_group *group, ttd_position first, ttd_position last)
{
    if (ttd_position_compare(first, group->first) < 0)
        group->first = first;
    if (ttd_position_compare(last, group->last) > 0)
        group->last = last;
}

ttd_status heap_groups_add(heap_groups *groups, const heap_block *block)
{
    heap_group *group;
    ttd_status status = group_of(groups, block, &group);
    if (status != TTD_OK)
        return status;
    group->blocks++;
    group->bytes = heap_add(group->bytes, block->size);
    widen(group, block->allocated, block->allocated);
    groups->blocks++;
    groups->bytes = heap_add(groups->bytes, block->size);
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
}

static void merge(void *into, const void *from)
{
    heap_group *sum = into;
    const heap_group *group = from;
    sum->blocks += group->blocks;
    sum->bytes = heap_add(sum->bytes, group->bytes);
    widen(sum, group->first, group->last);
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
