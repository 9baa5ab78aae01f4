/* SPDX-License-Identifier: MIT */
/* The map of a chunk: from 64-bit keys to 32-bit numbers. */
#include <criterion/criterion.h>

#include "base/map.h"
#include "support/chaos.h"

static struct chaos_memory memory;
static struct ttd_allocator allocator;
static struct ttd_map map;

static void begin(void)
{
    chaos_memory_init(&memory, CHAOS_NEVER);
    allocator = chaos_allocator(&memory);
    ttd_map_init(&map, &allocator);
}

static void finish(void)
{
    ttd_map_free(&map);
    cr_assert_eq(memory.blocks, 0, "nothing is left allocated");
}

TestSuite(map, .init = begin, .fini = finish);

static void expect_value(uint64_t key, uint32_t expected)
{
    uint32_t value;
    cr_assert(ttd_map_find(&map, key, &value));
    cr_assert_eq(value, expected);
}

static void expect_absent(uint64_t key)
{
    uint32_t value;
    cr_assert_not(ttd_map_find(&map, key, &value));
}

Test(map, has_nothing_at_first)
{
    expect_absent(0);
}

Test(map, finds_what_was_added)
{
    cr_assert(ttd_map_add(&map, 7, 70));
    expect_value(7, 70);
    expect_absent(8);
}

Test(map, tells_extreme_keys_and_values_from_empty_slots)
{
    cr_assert(ttd_map_add(&map, 0, 0));
    cr_assert(ttd_map_add(&map, UINT64_MAX, UINT32_MAX));
    expect_value(0, 0);
    expect_value(UINT64_MAX, UINT32_MAX);
}

Test(map, finds_all_while_it_grows)
{
    for (uint32_t i = 0; i < 5000; i++)
        cr_assert(ttd_map_add(&map, (uint64_t)i << 12, i));
    for (uint32_t i = 0; i < 5000; i++)
        expect_value((uint64_t)i << 12, i);
    cr_assert_eq(map.count, 5000);
    expect_absent(1);
}

Test(map, has_nothing_after_it_is_cleared)
{
    cr_assert(ttd_map_add(&map, 7, 70));
    ttd_map_clear(&map);
    cr_assert_eq(map.count, 0);
    expect_absent(7);
}

Test(map, is_unchanged_without_memory)
{
    uint32_t count = 0;
    memory.counter.fail_at = 1;
    while (ttd_map_add(&map, count, count))
        count++;
    cr_assert_eq(map.count, count);
    for (uint32_t i = 0; i < count; i++)
        expect_value(i, i);
    expect_absent(count);
}
