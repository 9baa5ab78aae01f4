/* SPDX-License-Identifier: MIT */
/* Regions, and better ones laid over them. */
#include <criterion/criterion.h>

#include "snapshot/layout/maps.h"
#include "support/cpu_limit.h"

#define PAGE UINT64_C(4096)

static void add(struct regions *regions, uint64_t begin, uint64_t end, unsigned kind)
{
    struct region region = {.begin = begin, .end = end, .kind = kind};
    regions_add(regions, &region);
}

static void check(const struct regions *regions, size_t i, uint64_t begin, uint64_t end,
                  unsigned kind)
{
    cr_assert(i < regions->count);
    const struct region *region = &regions->items[i];
    cr_assert(region->begin == begin && region->end == end && region->kind == kind,
              "%zu: [%lx, %lx) %u", i, (unsigned long)region->begin, (unsigned long)region->end,
              (unsigned)region->kind);
}

Test(regions, better_ones_cut_others)
{
    struct regions regions = {0}, better = {0};
    add(&regions, 0x1000, 0x2000, TTD_REGION_ANONYMOUS);
    add(&regions, 0x3000, 0x5000, TTD_REGION_FILE);
    add(&better, 0x1800, 0x3800, TTD_REGION_STACK); /* also where there is nothing */
    add(&better, 0x3000, 0x3400, TTD_REGION_TLS);   /* within the one before */
    add(&better, 0x4000, 0x4100, TTD_REGION_HEAP);
    regions_refine(&regions, &better);
    cr_assert_eq(regions.count, 6);
    check(&regions, 0, 0x1000, 0x1800, TTD_REGION_ANONYMOUS);
    check(&regions, 1, 0x1800, 0x2000, TTD_REGION_STACK);
    check(&regions, 2, 0x3000, 0x3800, TTD_REGION_STACK);
    check(&regions, 3, 0x3800, 0x4000, TTD_REGION_FILE);
    check(&regions, 4, 0x4000, 0x4100, TTD_REGION_HEAP);
    check(&regions, 5, 0x4100, 0x5000, TTD_REGION_FILE);
    regions_free(&regions);
}

/* The most regions that a program can have mapped, under the most that it can claim to be the
 * recorder's. */
Test(regions, many_that_overlap_cost_little)
{
    cpu_limit(30);
    enum { MAPPED = 65000, CLAIMED = 1000000 };
    struct regions regions = {0}, better = {0};
    for (uint64_t i = 1; i <= MAPPED; i++)
        add(&regions, 2 * i * PAGE, (2 * i + 1) * PAGE, TTD_REGION_ANONYMOUS);
    add(&better, 0, UINT64_MAX, REGION_SKIPPED);
    for (uint64_t i = 0; i < CLAIMED; i++)
        add(&better, 1, 2, REGION_SKIPPED);
    regions_refine(&regions, &better);
    cr_assert_eq(regions.count, MAPPED);
    check(&regions, MAPPED - 1, 2 * MAPPED * PAGE, (2 * MAPPED + 1) * PAGE, REGION_SKIPPED);
    regions_free(&regions);
}
