/* SPDX-License-Identifier: MIT */
#include "snapshot/layout/regions.h"

#include <stdlib.h>

#include "arrays.h"

void regions_free(struct regions *regions)
{
    free(regions->items);
    *regions = (struct regions){0};
}

void regions_add(struct regions *regions, const struct region *region)
{
    if (region->begin >= region->end)
        return;
    void *items =
        array_grow(regions->items, regions->count, &regions->capacity, sizeof *regions->items);
    if (!items) {
        regions->is_short = true;
        return;
    }
    regions->items = items;
    regions->items[regions->count++] = *region;
}

const struct region *regions_at(const struct regions *regions, uint64_t address)
{
    size_t ended_count = array_count_up_to(regions->items, regions->count, sizeof *regions->items,
                                           offsetof(struct region, end), address);
    bool is_found = ended_count < regions->count && regions->items[ended_count].begin <= address;
    return is_found ? &regions->items[ended_count] : NULL;
}

static int regions_compare_begins(const void *left, const void *right)
{
    uint64_t a = ((const struct region *)left)->begin, b = ((const struct region *)right)->begin;
    return a < b ? -1 : a > b;
}

/* Adds the part of a region in [begin, end), within the mapping of another one. */
static void regions_add_part(struct regions *regions, const struct region *region,
                             const struct region *mapping, uint64_t begin, uint64_t end)
{
    struct region part = *region;
    part.untouched = mapping->untouched;
    part.is_device = mapping->is_device;
    part.shared_device = mapping->shared_device;
    part.shared_inode = mapping->shared_inode;
    part.shared_shift = mapping->shared_shift;
    part.begin = begin;
    part.end = end;
    regions_add(regions, &part);
}

void regions_refine(struct regions *regions, struct regions *refined)
{
    struct regions result = {.is_short = regions->is_short || refined->is_short};
    size_t next = 0;
    if (refined->count == 0) {
        regions->is_short |= refined->is_short;
        return;
    }
    qsort(refined->items, refined->count, sizeof *refined->items, regions_compare_begins);
    for (size_t i = 0; i < regions->count; i++) {
        const struct region *whole = &regions->items[i];
        uint64_t address = whole->begin;
        while (next < refined->count && refined->items[next].end <= address)
            next++;
        for (size_t j = next;
             j < refined->count && refined->items[j].begin < whole->end && address < whole->end;
             j++) {
            const struct region *over = &refined->items[j];
            uint64_t begin = over->begin > address ? over->begin : address;
            uint64_t end = over->end < whole->end ? over->end : whole->end;
            if (begin >= end)
                continue;
            regions_add_part(&result, whole, whole, address, begin);
            regions_add_part(&result, over, whole, begin, end);
            address = end;
        }
        regions_add_part(&result, whole, whole, address, whole->end);
    }
    regions_free(refined);
    regions_free(regions);
    *regions = result;
}
