/* SPDX-License-Identifier: MIT */
/* The table of live blocks: one block at an address, and heaps that are destroyed. */
#include "support/fixtures/live.h"

TestSuite(live, .init = live_begin, .fini = live_finish);

Test(live, has_nothing_at_first)
{
    size_t cursor = 0;
    cr_assert_eq(live.count, 0);
    cr_assert_null(heap_live_find(&live, 0x10, TTD_NONE));
    cr_assert_null(heap_live_each(&live, &cursor));
}

Test(live, finds_a_block_by_its_address_alone)
{
    acquire(0x10, 1, 24);

    const struct heap_block *block = heap_live_find(&live, 0x10, TTD_NONE);

    cr_assert_not_null(block);
    cr_assert_eq(block->address, 0x10);
    cr_assert_eq(block->size, 24);
    cr_assert_null(heap_live_find(&live, 0x11, TTD_NONE));
}

Test(live, forgets_a_block_that_is_released)
{
    acquire(0x10, 1, 24);

    cr_assert(release(0x10));

    cr_assert_null(heap_live_find(&live, 0x10, TTD_NONE));
    cr_assert_eq(live.count, 0);
    cr_assert_eq(live.bytes.low, 0);
}

Test(live, refuses_to_release_a_block_twice)
{
    acquire(0x10, 1, 24);
    release(0x10);
    cr_assert_not(release(0x10));
}

Test(live, tells_of_a_live_block_that_is_replaced)
{
    acquire(0x10, 1, 24);

    cr_assert(acquire(0x10, 1, 100));

    cr_assert_eq(live.count, 1);
    cr_assert_eq(live.bytes.low, 100);
}

Test(live, copies_all_of_a_block_but_what_is_the_tables_own)
{
    struct heap_block replaced;
    acquire(0x8, 7, 1);
    acquire(0x20, 3, 1);
    struct heap_block block = {.address = 0x10,
                               .size = 1,
                               .event = 2,
                               .allocated = {3, 4},
                               .thread = 5,
                               .stack = 6,
                               .heap = 7,
                               .user = 8,
                               .generation = 99,
                               .action = TTD_ACTION_REALLOC,
                               .api = 9};

    uint32_t record = record_of(0x10);
    heap_live_acquire(&live, &record, &block, &replaced);

    const struct heap_block *copy = heap_live_find(&live, 0x10, TTD_NONE);
    cr_assert_eq(copy->size, 1);
    cr_assert_eq(copy->event, 2);
    cr_assert_eq(copy->allocated.sequence, 3);
    cr_assert_eq(copy->allocated.steps, 4);
    cr_assert_eq(copy->thread, 5);
    cr_assert_eq(copy->stack, 6);
    cr_assert_eq(copy->heap, 7);
    cr_assert_eq(copy->user, 8);
    cr_assert_eq(copy->action, TTD_ACTION_REALLOC);
    cr_assert_eq(copy->api, 9);
    cr_assert_eq(copy->generation, heap_live_find(&live, 0x8, TTD_NONE)->generation);
    cr_assert(copy->is_held);
}

Test(live, destroys_the_blocks_of_one_heap)
{
    acquire(0x10, 1, 8);
    acquire(0x20, 2, 16);
    acquire(0x30, 1, 32);

    uint64_t destroyed = heap_live_destroy(&live, 1, ttd_position_min());

    cr_assert_eq(destroyed, 2);
    cr_assert_eq(live.bytes.low, 16);
    cr_assert_null(heap_live_find(&live, 0x10, TTD_NONE));
    cr_assert_not_null(heap_live_find(&live, 0x20, TTD_NONE));
}

Test(live, uses_the_address_of_a_destroyed_block_again)
{
    acquire(0x10, 1, 8);
    heap_live_destroy(&live, 1, ttd_position_min());

    cr_assert_not(acquire(0x10, 1, 64));

    cr_assert_eq(live.bytes.low, 64);
}

static void note_discarded(void *context, const struct heap_block *block, struct ttd_position end)
{
    struct ttd_position *ends = context;
    ends[block->address / 0x10] = end;
}

Test(live, tells_of_destroyed_blocks_when_it_is_swept)
{
    struct ttd_position ends[3] = {{0, 0}};
    live.discard = note_discarded;
    live.discard_context = ends;
    acquire(0x10, 1, 8);
    acquire(0x20, 2, 8);
    heap_live_destroy(&live, 1, (struct ttd_position){7, 3});

    heap_live_sweep(&live);

    cr_assert_eq(ends[1].sequence, 7);
    cr_assert_eq(ends[1].steps, 3);
    cr_assert_eq(ends[2].sequence, 0, "still live");
}

Test(live, steps_through_live_blocks_only)
{
    uint64_t seen = 0;
    size_t cursor = 0;
    const struct heap_block *block;
    for (uint64_t address = 0x10; address <= 0x60; address += 0x10)
        acquire(address, 1 + (address == 0x30), 8);
    release(0x20);
    heap_live_destroy(&live, 2, ttd_position_min());

    while ((block = heap_live_each(&live, &cursor)))
        seen |= UINT64_C(1) << block->address / 0x10;

    cr_assert_eq(seen, 1 << 1 | 1 << 4 | 1 << 5 | 1 << 6);
}
