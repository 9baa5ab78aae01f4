/* SPDX-License-Identifier: MIT */
/* The table of live blocks: many blocks, compared with an array, and their cost. */
#include "support/cpu_limit.h"
#include "support/entropy.h"
#include "support/fixtures/live.h"

TestSuite(live_many, .init = live_begin, .fini = live_finish);

#define ADDRESSES 100000
#define HEAPS     3

/* Sizes of live blocks by address and heap from 1; 0 where none is. */
static uint64_t expected[ADDRESSES][HEAPS + 1];

static uint64_t destroy_expected(ttd_id heap)
{
    uint64_t destroyed = 0;
    for (size_t i = 0; i < ADDRESSES; i++) {
        destroyed += expected[i][heap] != 0;
        expected[i][heap] = 0;
    }
    return destroyed;
}

static uint64_t address_of(size_t index)
{
    return 0x7f0000000000 + index * 16;
}

static void acquire_both(size_t index, ttd_id heap, uint64_t size)
{
    cr_assert_eq(acquire(address_of(index), heap, size), expected[index][heap] != 0);
    expected[index][heap] = size;
}

static void release_both(size_t index, ttd_id heap)
{
    const struct heap_block *block = heap_live_find(&live, address_of(index), heap);
    cr_assert_eq(block != NULL, expected[index][heap] != 0);
    if (block)
        cr_assert_eq(block->size, expected[index][heap]);
    cr_assert_eq(release_of(address_of(index), heap), block != NULL);
    expected[index][heap] = 0;
}

Test(live_many, agrees_with_an_array)
{
    struct entropy entropy = entropy_of_seed(7);
    for (unsigned i = 0; i < 12 * ADDRESSES; i++) {
        size_t index = entropy_pick(&entropy, ADDRESSES);
        ttd_id heap = 1 + entropy_pick(&entropy, HEAPS);
        uint64_t count = live.count;
        uint64_t change = expected[index][heap] != 0;
        if (entropy_pick(&entropy, 100000) == 0) {
            change = destroy_expected(heap);
            cr_assert_eq(heap_live_destroy(&live, heap, ttd_position_min()), change);
            cr_assert_eq(live.count, count - change);
        } else if (entropy_pick(&entropy, 5) < 3) {
            acquire_both(index, heap, i + 1);
            cr_assert_eq(live.count, count + 1 - change);
        } else {
            release_both(index, heap);
            cr_assert_eq(live.count, count - change);
        }
        sweep_if_littered();
    }
}

/* Destroying small heaps again and again costs nothing for the blocks of others. */
Test(live_many, destroys_small_heaps_beside_a_large_one_cheaply)
{
    cpu_limit(20);
    for (uint64_t i = 1; i <= 1000000; i++)
        cr_assert_not(acquire(i * 32, 1, i));
    for (uint64_t i = 1; i <= 1000000; i++) {
        cr_assert_not(acquire(UINT64_C(0x10000000000) + i * 32, 2, i));
        cr_assert_eq(heap_live_destroy(&live, 2, ttd_position_min()), 1);
        sweep_if_littered();
    }
    cr_assert_eq(live.count, 1000000);
    cr_assert_lt(live.slot_capacity, 8000000);
}

Test(live_many, keeps_nothing_of_a_heap_that_is_destroyed_again_and_again)
{
    for (uint64_t i = 1; i <= 1000000; i++) {
        cr_assert_not(acquire(32, 1, i));
        cr_assert_eq(heap_live_destroy(&live, 1, ttd_position_min()), 1);
        sweep_if_littered();
    }
    cr_assert_lt(live.generation_capacity, 10000);
}

/* Long after a peak new addresses cost no more than before it. */
Test(live_many, neither_grows_nor_is_swept_often_after_a_peak)
{
    cpu_limit(20);
    unsigned sweeps = 0;
    for (uint64_t i = 1; i <= 500000; i++)
        cr_assert_not(acquire(i * 32, 1, i));
    for (uint64_t i = 1; i <= 500000; i++)
        cr_assert(release(i * 32));
    size_t capacity = live.slot_capacity;

    for (uint64_t i = 1; i <= 2000000; i++) {
        uint64_t address = UINT64_C(0x10000000000) + i * 32;
        cr_assert_not(acquire(address, 1, i));
        cr_assert(release(address));
        sweeps += heap_live_is_littered(&live);
        sweep_if_littered();
    }

    cr_assert_lt(sweeps, 40);
    cr_assert_eq(live.slot_capacity, capacity);
}

/* A hostile trace has as many heaps as events. */
Test(live_many, bears_one_address_in_many_heaps)
{
    cpu_limit(20);
    for (ttd_id heap = 1; heap <= 1000000; heap++)
        acquire(0x10, heap, 1);
    cr_assert_eq(live.count, HEAP_SHARED_MAX);
}
