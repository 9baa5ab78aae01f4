/* SPDX-License-Identifier: MIT */
/* How much is live, from effects as they come; and sums of sizes. */
#include <criterion/criterion.h>

#include "heap/totals.h"

static struct heap_totals totals;
static struct heap_parents parents;

static void begin(void)
{
    heap_totals_init(&totals, &parents);
}

static void finish(void)
{
    heap_totals_free(&totals);
    heap_parents_free(&parents);
}

TestSuite(totals, .init = begin, .fini = finish);

static void add_block(enum heap_effect_kind kind, ttd_id heap, uint64_t size)
{
    struct heap_block block = {.heap = heap, .size = size};
    struct heap_effect effect = {.kind = kind, .heap = heap, .block = &block};
    uint64_t released;
    cr_assert_eq(heap_totals_add(&totals, &effect, &released), TTD_OK);
    cr_assert_eq(released, kind == HEAP_RELEASED || kind == HEAP_OVERLAPPED);
}

static void add_destruction(ttd_id heap, uint64_t blocks)
{
    struct heap_effect effect = {.kind = HEAP_DESTROYED, .heap = heap};
    uint64_t released;
    cr_assert_eq(heap_totals_add(&totals, &effect, &released), TTD_OK);
    cr_assert_eq(released, blocks);
}

static void expect_total(const struct heap_total *total, uint64_t blocks, uint64_t bytes)
{
    cr_assert_eq(total->blocks, blocks);
    cr_assert_eq(total->bytes.high, 0);
    cr_assert_eq(total->bytes.low, bytes);
}

Test(totals, are_of_each_heap)
{
    add_block(HEAP_ACQUIRED, 1, 8);
    add_block(HEAP_ACQUIRED, 2, 100);
    add_block(HEAP_ACQUIRED, 1, 16);

    cr_assert_eq(totals.count, 2);
    expect_total(&totals.heaps[0].total, 2, 24);
    expect_total(&totals.heaps[1].total, 1, 100);
    expect_total(&totals.outer, 3, 124);
}

Test(totals, count_blocks_in_other_blocks_apart)
{
    struct ttd_heap_parent record = {.heap = 2, .parent = 1};
    struct ttd_batch batch = {.kind = TTD_KIND_HEAP_PARENTS, .count = 1, .u.heap_parents = &record};
    cr_assert_eq(heap_parents_add(&parents, &batch), TTD_OK);
    add_block(HEAP_ACQUIRED, 1, 100);
    add_block(HEAP_ACQUIRED, 2, 10);
    add_block(HEAP_ACQUIRED, 2, 20);
    expect_total(&totals.outer, 1, 100);
    expect_total(&totals.heaps[1].total, 2, 30);

    add_block(HEAP_RELEASED, 2, 10);
    add_destruction(2, 1);

    expect_total(&totals.outer, 1, 100);
    expect_total(&totals.heaps[1].total, 0, 0);
}

Test(totals, are_less_by_what_is_released)
{
    add_block(HEAP_ACQUIRED, 1, 8);
    add_block(HEAP_ACQUIRED, 1, 16);

    add_block(HEAP_RELEASED, 1, 8);

    expect_total(&totals.heaps[0].total, 1, 16);
}

Test(totals, are_less_by_what_another_block_replaces)
{
    add_block(HEAP_ACQUIRED, 1, 8);
    add_block(HEAP_OVERLAPPED, 1, 8);
    expect_total(&totals.outer, 0, 0);
}

Test(totals, are_less_by_a_heap_that_is_destroyed)
{
    add_block(HEAP_ACQUIRED, 1, 8);
    add_block(HEAP_ACQUIRED, 1, 16);
    add_block(HEAP_ACQUIRED, 2, 100);

    add_destruction(1, 2);

    expect_total(&totals.heaps[0].total, 0, 0);
    expect_total(&totals.outer, 1, 100);
}

Test(totals, count_a_destroyed_block_once)
{
    add_block(HEAP_ACQUIRED, 1, 8);
    add_destruction(1, 1);

    add_block(HEAP_DISCARDED, 1, 8);

    expect_total(&totals.outer, 0, 0);
}

Test(totals, ignore_the_release_of_what_is_not_known)
{
    struct heap_effect effect = {.kind = HEAP_UNKNOWN_RELEASE, .address = 0x10};
    add_block(HEAP_ACQUIRED, 1, 8);

    uint64_t released;
    cr_assert_eq(heap_totals_add(&totals, &effect, &released), TTD_OK);
    cr_assert_eq(released, 0);

    expect_total(&totals.outer, 1, 8);
}

Test(totals, may_exceed_64_bits_and_come_back)
{
    add_block(HEAP_ACQUIRED, 1, UINT64_MAX);
    add_block(HEAP_ACQUIRED, 1, 3);
    cr_assert_eq(totals.outer.bytes.high, 1);
    cr_assert_eq(totals.outer.bytes.low, 2);
    cr_assert_eq(heap_sum_value(totals.outer.bytes), UINT64_MAX);

    add_block(HEAP_RELEASED, 1, UINT64_MAX);

    expect_total(&totals.outer, 1, 3);
}

Test(totals, are_compared_by_all_their_bits)
{
    const struct heap_sum small = {.high = 0, .low = UINT64_MAX};
    const struct heap_sum large = {.high = 1, .low = 0};
    cr_assert(heap_sum_is_less(small, large));
    cr_assert_not(heap_sum_is_less(large, small));
    cr_assert_not(heap_sum_is_less(large, large));
}
