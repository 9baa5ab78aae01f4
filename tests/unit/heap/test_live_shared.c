/* SPDX-License-Identifier: MIT */
/* The table of live blocks: blocks of several heaps at one address. */
#include "support/fixtures/live.h"

TestSuite(live_shared, .init = live_begin, .fini = live_finish);

Test(live_shared, keeps_blocks_of_several_heaps_at_one_address)
{
    cr_assert_not(acquire(0x10, 1, 100));
    cr_assert_not(acquire(0x10, 2, 10));
    cr_assert_not(acquire(0x10, 3, 1));
    cr_assert_eq(live.count, 3);

    cr_assert(release_of(0x10, 2));
    cr_assert_not(release_of(0x10, 2));

    cr_assert_null(heap_live_find(&live, 0x10, 2));
    cr_assert_eq(heap_live_find(&live, 0x10, 1)->size, 100);
    cr_assert_eq(heap_live_find(&live, 0x10, 3)->size, 1);
}

Test(live_shared, ends_the_block_of_the_same_heap_only)
{
    acquire(0x10, 1, 100);
    acquire(0x10, 2, 10);
    cr_assert(acquire(0x10, 1, 50));
    cr_assert_eq(live.count, 2);
    cr_assert_eq(heap_live_find(&live, 0x10, 1)->size, 50);
    cr_assert_eq(heap_live_find(&live, 0x10, 2)->size, 10);
}

Test(live_shared, takes_an_unknown_heap_for_the_newest)
{
    acquire(0x10, 1, 100);
    acquire(0x10, 2, 10);
    cr_assert_eq(heap_live_find(&live, 0x10, TTD_NONE)->heap, 2);
    cr_assert(release(0x10));
    cr_assert_eq(heap_live_find(&live, 0x10, TTD_NONE)->heap, 1);
}

Test(live_shared, takes_a_block_of_an_unknown_heap_for_the_own_one)
{
    acquire(0x10, TTD_NONE, 100);
    cr_assert_eq(heap_live_find(&live, 0x10, 7)->size, 100);
    cr_assert(acquire(0x10, 7, 10));
    cr_assert_eq(live.count, 1);
    cr_assert_null(heap_live_find(&live, 0x10, 8));
}

Test(live_shared, counts_bytes_of_outer_heaps_once)
{
    struct ttd_heap_parent record = {.heap = 2, .parent = 1};
    struct ttd_batch batch = {.kind = TTD_KIND_HEAP_PARENTS, .count = 1, .u.heap_parents = &record};
    cr_assert_eq(heap_parents_add(&live.parents, &batch), TTD_OK);
    acquire(0x10, 1, 100);
    acquire(0x10, 2, 10);
    acquire(0x20, 2, 20);
    cr_assert_eq(live.count, 3);
    cr_assert_eq(live.outer_count, 1);
    cr_assert_eq(live.bytes.low, 100);

    release_of(0x20, 2);
    cr_assert_eq(heap_live_destroy(&live, 2, ttd_position_min()), 1);

    cr_assert_eq(live.count, 1);
    cr_assert_eq(live.outer_count, 1);
    cr_assert_eq(live.bytes.low, 100);
}

Test(live_shared, ends_the_oldest_of_too_many_blocks_of_one_address)
{
    for (ttd_id heap = 1; heap <= HEAP_SHARED_MAX; heap++)
        cr_assert_not(acquire(0x10, heap, heap));
    cr_assert(acquire(0x10, HEAP_SHARED_MAX + 1, 1));
    cr_assert_eq(live.count, HEAP_SHARED_MAX);
    cr_assert_null(heap_live_find(&live, 0x10, 1));
    cr_assert_not_null(heap_live_find(&live, 0x10, 2));
}
