/* SPDX-License-Identifier: MIT */
#include "analyses/fragmentation.h"

#include <stdlib.h>

#include "base/grow.h"

static uint64_t last_of(const struct heap_block *block)
{
    uint64_t reach = block->size ? block->size - 1 : 0;
    return reach > UINT64_MAX - block->address ? UINT64_MAX : block->address + reach;
}

static enum ttd_status begin_region(struct heap_fragmentation *fragmentation,
                                    const struct heap_block *block)
{
    enum ttd_status status = grow_array((void **)&fragmentation->items, &fragmentation->capacity,
                                        fragmentation->count + 1, sizeof *fragmentation->items);
    if (status == TTD_OK)
        fragmentation->items[fragmentation->count++] =
            (struct heap_region){.begin = block->address,
                                 .last = last_of(block),
                                 .blocks = 1,
                                 .used = last_of(block) - block->address + 1};
    return status;
}

/* A block that is not before the region's beginning; blocks of a faulty trace may overlap. */
static void extend(struct heap_region *region, const struct heap_block *block)
{
    uint64_t last = last_of(block);
    region->blocks++;
    if (block->address > region->last) {
        uint64_t gap = block->address - region->last - 1;
        region->gaps += gap > 0;
        region->unused += gap;
        region->largest_gap = gap > region->largest_gap ? gap : region->largest_gap;
        region->used += last - block->address + 1;
    } else if (last > region->last) {
        region->used += last - region->last;
    }
    region->last = last > region->last ? last : region->last;
}

static void sum_up(struct heap_fragmentation *fragmentation)
{
    struct heap_region *total = &fragmentation->total;
    for (size_t i = 0; i < fragmentation->count; i++) {
        const struct heap_region *region = &fragmentation->items[i];
        total->blocks += region->blocks;
        total->used += region->used;
        total->unused += region->unused;
        total->gaps += region->gaps;
        if (region->largest_gap > total->largest_gap)
            total->largest_gap = region->largest_gap;
    }
}

enum ttd_status heap_fragmentation_find(const struct heap_block *blocks, size_t count, uint64_t far,
                                        struct heap_fragmentation *fragmentation)
{
    *fragmentation = (struct heap_fragmentation){0};
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < count && status == TTD_OK; i++) {
        struct heap_region *region =
            fragmentation->count ? &fragmentation->items[fragmentation->count - 1] : NULL;
        bool is_near = region && (blocks[i].address <= region->last ||
                                  blocks[i].address - region->last - 1 < far);
        if (is_near)
            extend(region, &blocks[i]);
        else
            status = begin_region(fragmentation, &blocks[i]);
    }
    sum_up(fragmentation);
    if (status != TTD_OK)
        heap_fragmentation_free(fragmentation);
    return status;
}

void heap_fragmentation_free(struct heap_fragmentation *fragmentation)
{
    free(fragmentation->items);
    fragmentation->items = NULL;
}
