/* SPDX-License-Identifier: MIT */
#include "heap/groups.h"

#include <stdlib.h>

#include "base/grow.h"

void heap_groups_init(heap_groups *groups)
{
    *groups = (heap_groups){0};
    map_init(&groups->by_stack);
}

void heap_groups_free(heap_groups *groups)
{
    free(groups->items);
    map_free(&groups->by_stack);
    *groups = (heap_groups){0};
}

static ttd_status group_of(heap_groups *groups, ttd_id key, const heap_block *block,
                           heap_group **group)
{
    uint32_t index = map_get(&groups->by_stack, key, 0);
    if (index != MAP_NONE) {
        *group = &groups->items[index];
        return TTD_OK;
    }
    ttd_status status = grow_array((void **)&groups->items, &groups->capacity, groups->count + 1,
                                   sizeof *groups->items);
    if (status == TTD_OK)
        status = map_set(&groups->by_stack, key, 0, (uint32_t)groups->count);
    if (status != TTD_OK)
        return status;
    *group = &groups->items[groups->count++];
    **group = (heap_group){.stack = key, .first = block->allocated, .last = block->allocated};
    return TTD_OK;
}

/* Sizes are what the program asked for, which may be nonsense: the sum stops at the top. */
static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

ttd_status heap_groups_add(heap_groups *groups, const heap_block *block)
{
    return heap_groups_add_as(groups, block->stack, block);
}

ttd_status heap_groups_add_as(heap_groups *groups, ttd_id key, const heap_block *block)
{
    heap_group *group;
    ttd_status status = group_of(groups, key, block, &group);
    if (status != TTD_OK)
        return status;
    group->blocks++;
    group->bytes = add(group->bytes, block->size);
    if (ttd_position_compare(block->allocated, group->first) < 0)
        group->first = block->allocated;
    if (ttd_position_compare(block->allocated, group->last) > 0)
        group->last = block->allocated;
    groups->blocks++;
    groups->bytes = add(groups->bytes, block->size);
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
    return (x->stack > y->stack) - (x->stack < y->stack);
}

void heap_groups_sort(heap_groups *groups)
{
    if (groups->count)
        qsort(groups->items, groups->count, sizeof *groups->items, compare);
    map_free(&groups->by_stack);
}
