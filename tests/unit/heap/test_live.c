/* SPDX-License-Identifier: MIT */
/* The table of live blocks. */
#include <criterion/criterion.h>

#include "heap/live.h"
#include "support/entropy.h"

static uint32_t entry_of(struct heap_live *live, uint64_t address)
{
    uint32_t entry;
    cr_assert_eq(heap_live_record(live, address, heap_live_hash(live, address), &entry), TTD_OK);
    return entry;
}

/* Acquires a block as the replay does; returns whether a live one was replaced. */
static bool acquire(struct heap_live *live, uint64_t address, ttd_id heap, uint64_t size)
{
    static uint64_t events;
    struct heap_block replaced;
    struct heap_block block = {.address = address, .size = size, .event = ++events, .heap = heap};
    uint32_t record = entry_of(live, address);
    cr_assert_eq(heap_live_acquire(live, &record, &block, &replaced), TTD_OK);
    cr_assert_eq(live->blocks[record].address, address);
    return replaced.address;
}

static bool release_of(struct heap_live *live, uint64_t address, ttd_id heap)
{
    uint32_t record = heap_live_own(live, entry_of(live, address), heap);
    return record != HEAP_NO_RECORD && heap_live_release(live, record);
}

static bool release(struct heap_live *live, uint64_t address)
{
    return release_of(live, address, TTD_NONE);
}

static void sweep_if_littered(struct heap_live *live)
{
    if (heap_live_is_littered(live))
        heap_live_sweep(live);
}

static struct heap_live live;

static void begin(void)
{
    cr_assert_eq(heap_live_init(&live), TTD_OK);
}

static void finish(void)
{
    heap_live_free(&live);
}

TestSuite(live, .init = begin, .fini = finish);

Test(live, has_nothing_at_first)
{
    size_t cursor = 0;
    cr_assert_eq(live.count, 0);
    cr_assert_null(heap_live_find(&live, 0x10, TTD_NONE));
    cr_assert_null(heap_live_each(&live, &cursor));
}

Test(live, finds_a_block_by_its_address_alone)
{
    acquire(&live, 0x10, 1, 24);

    const struct heap_block *block = heap_live_find(&live, 0x10, TTD_NONE);

    cr_assert_not_null(block);
    cr_assert_eq(block->address, 0x10);
    cr_assert_eq(block->size, 24);
    cr_assert_null(heap_live_find(&live, 0x11, TTD_NONE));
}

Test(live, forgets_a_block_that_is_released)
{
    acquire(&live, 0x10, 1, 24);

    cr_assert(release(&live, 0x10));

    cr_assert_null(heap_live_find(&live, 0x10, TTD_NONE));
    cr_assert_eq(live.count, 0);
    cr_assert_eq(live.bytes.low, 0);
}

Test(live, refuses_to_release_a_block_twice)
{
    acquire(&live, 0x10, 1, 24);
    release(&live, 0x10);
    cr_assert_not(release(&live, 0x10));
}

Test(live, tells_of_a_live_block_that_is_replaced)
{
    acquire(&live, 0x10, 1, 24);

    cr_assert(acquire(&live, 0x10, 1, 100));

    cr_assert_eq(live.count, 1);
    cr_assert_eq(live.bytes.low, 100);
}

Test(live, copies_all_of_a_block_but_what_is_the_tables_own)
{
    struct heap_block replaced;
    acquire(&live, 0x8, 7, 1);
    acquire(&live, 0x20, 3, 1);
    struct heap_block block = {.address = 0x10,
                               .size = 1,
                               .event = 2,
                               .allocated = {3, 4},
                               .thread = 5,
                               .stack = 6,
                               .heap = 7,
                               .user = 8,
                               .life = 99,
                               .action = TTD_ACTION_REALLOC,
                               .api = 9};

    uint32_t record = entry_of(&live, 0x10);
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
    cr_assert_eq(copy->life, heap_live_find(&live, 0x8, TTD_NONE)->life);
    cr_assert(copy->is_held);
}

Test(live, destroys_the_blocks_of_one_heap)
{
    acquire(&live, 0x10, 1, 8);
    acquire(&live, 0x20, 2, 16);
    acquire(&live, 0x30, 1, 32);

    uint64_t destroyed = heap_live_destroy(&live, 1, ttd_position_min());

    cr_assert_eq(destroyed, 2);
    cr_assert_eq(live.bytes.low, 16);
    cr_assert_null(heap_live_find(&live, 0x10, TTD_NONE));
    cr_assert_not_null(heap_live_find(&live, 0x20, TTD_NONE));
}

Test(live, uses_the_address_of_a_destroyed_block_again)
{
    acquire(&live, 0x10, 1, 8);
    heap_live_destroy(&live, 1, ttd_position_min());

    cr_assert_not(acquire(&live, 0x10, 1, 64));

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
    acquire(&live, 0x10, 1, 8);
    acquire(&live, 0x20, 2, 8);
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
        acquire(&live, address, 1 + (address == 0x30), 8);
    release(&live, 0x20);
    heap_live_destroy(&live, 2, ttd_position_min());

    while ((block = heap_live_each(&live, &cursor)))
        seen |= UINT64_C(1) << block->address / 0x10;

    cr_assert_eq(seen, 1 << 1 | 1 << 4 | 1 << 5 | 1 << 6);
}

/* ---- Against an array ---- */

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
    cr_assert_eq(acquire(&live, address_of(index), heap, size), expected[index][heap] != 0);
    expected[index][heap] = size;
}

static void release_both(size_t index, ttd_id heap)
{
    const struct heap_block *block = heap_live_find(&live, address_of(index), heap);
    cr_assert_eq(block != NULL, expected[index][heap] != 0);
    if (block)
        cr_assert_eq(block->size, expected[index][heap]);
    cr_assert_eq(release_of(&live, address_of(index), heap), block != NULL);
    expected[index][heap] = 0;
}

Test(live, agrees_with_an_array)
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
        sweep_if_littered(&live);
    }
}

/* ---- Heaps in each other ---- */

Test(live, keeps_blocks_of_several_heaps_at_one_address)
{
    cr_assert_not(acquire(&live, 0x10, 1, 100));
    cr_assert_not(acquire(&live, 0x10, 2, 10));
    cr_assert_not(acquire(&live, 0x10, 3, 1));
    cr_assert_eq(live.count, 3);

    cr_assert(release_of(&live, 0x10, 2));
    cr_assert_not(release_of(&live, 0x10, 2));

    cr_assert_null(heap_live_find(&live, 0x10, 2));
    cr_assert_eq(heap_live_find(&live, 0x10, 1)->size, 100);
    cr_assert_eq(heap_live_find(&live, 0x10, 3)->size, 1);
}

Test(live, ends_the_block_of_the_same_heap_only)
{
    acquire(&live, 0x10, 1, 100);
    acquire(&live, 0x10, 2, 10);
    cr_assert(acquire(&live, 0x10, 1, 50));
    cr_assert_eq(live.count, 2);
    cr_assert_eq(heap_live_find(&live, 0x10, 1)->size, 50);
    cr_assert_eq(heap_live_find(&live, 0x10, 2)->size, 10);
}

Test(live, takes_an_unknown_heap_for_the_newest)
{
    acquire(&live, 0x10, 1, 100);
    acquire(&live, 0x10, 2, 10);
    cr_assert_eq(heap_live_find(&live, 0x10, TTD_NONE)->heap, 2);
    cr_assert(release(&live, 0x10));
    cr_assert_eq(heap_live_find(&live, 0x10, TTD_NONE)->heap, 1);
}

Test(live, takes_a_block_of_an_unknown_heap_for_the_own_one)
{
    acquire(&live, 0x10, TTD_NONE, 100);
    cr_assert_eq(heap_live_find(&live, 0x10, 7)->size, 100);
    cr_assert(acquire(&live, 0x10, 7, 10));
    cr_assert_eq(live.count, 1);
    cr_assert_null(heap_live_find(&live, 0x10, 8));
}

Test(live, counts_bytes_of_outer_heaps_once)
{
    struct ttd_heap_parent record = {.heap = 2, .parent = 1};
    struct ttd_batch batch = {.kind = TTD_KIND_HEAP_PARENTS, .count = 1, .u.heap_parents = &record};
    cr_assert_eq(heap_parents_add(&live.parents, &batch), TTD_OK);
    acquire(&live, 0x10, 1, 100);
    acquire(&live, 0x10, 2, 10);
    acquire(&live, 0x20, 2, 20);
    cr_assert_eq(live.count, 3);
    cr_assert_eq(live.outer_count, 1);
    cr_assert_eq(live.bytes.low, 100);

    release_of(&live, 0x20, 2);
    cr_assert_eq(heap_live_destroy(&live, 2, ttd_position_min()), 1);

    cr_assert_eq(live.count, 1);
    cr_assert_eq(live.outer_count, 1);
    cr_assert_eq(live.bytes.low, 100);
}

Test(live, ends_the_oldest_of_too_many_blocks_of_one_address)
{
    for (ttd_id heap = 1; heap <= HEAP_SHARED_MAX; heap++)
        cr_assert_not(acquire(&live, 0x10, heap, heap));
    cr_assert(acquire(&live, 0x10, HEAP_SHARED_MAX + 1, 1));
    cr_assert_eq(live.count, HEAP_SHARED_MAX);
    cr_assert_null(heap_live_find(&live, 0x10, 1));
    cr_assert_not_null(heap_live_find(&live, 0x10, 2));
}

/* ---- Costs ---- */

/* Destroying small heaps again and again costs nothing for the blocks of others. */
Test(live, destroys_small_heaps_beside_a_large_one_cheaply, .timeout = 20)
{
    for (uint64_t i = 1; i <= 1000000; i++)
        cr_assert_not(acquire(&live, i * 32, 1, i));
    for (uint64_t i = 1; i <= 1000000; i++) {
        cr_assert_not(acquire(&live, UINT64_C(0x10000000000) + i * 32, 2, i));
        cr_assert_eq(heap_live_destroy(&live, 2, ttd_position_min()), 1);
        sweep_if_littered(&live);
    }
    cr_assert_eq(live.count, 1000000);
    cr_assert_lt(live.slot_capacity, 8000000);
}

Test(live, keeps_nothing_of_a_heap_that_is_destroyed_again_and_again)
{
    for (uint64_t i = 1; i <= 1000000; i++) {
        cr_assert_not(acquire(&live, 32, 1, i));
        cr_assert_eq(heap_live_destroy(&live, 1, ttd_position_min()), 1);
        sweep_if_littered(&live);
    }
    cr_assert_lt(live.life_capacity, 10000);
}

/* Long after a peak new addresses cost no more than before it. */
Test(live, neither_grows_nor_is_swept_often_after_a_peak, .timeout = 20)
{
    unsigned sweeps = 0;
    for (uint64_t i = 1; i <= 500000; i++)
        cr_assert_not(acquire(&live, i * 32, 1, i));
    for (uint64_t i = 1; i <= 500000; i++)
        cr_assert(release(&live, i * 32));
    size_t capacity = live.slot_capacity;

    for (uint64_t i = 1; i <= 2000000; i++) {
        uint64_t address = UINT64_C(0x10000000000) + i * 32;
        cr_assert_not(acquire(&live, address, 1, i));
        cr_assert(release(&live, address));
        sweeps += heap_live_is_littered(&live);
        sweep_if_littered(&live);
    }

    cr_assert_lt(sweeps, 40);
    cr_assert_eq(live.slot_capacity, capacity);
}

/* A hostile trace has as many heaps as events. */
Test(live, bears_one_address_in_many_heaps, .timeout = 20)
{
    for (ttd_id heap = 1; heap <= 1000000; heap++)
        acquire(&live, 0x10, heap, 1);
    cr_assert_eq(live.count, HEAP_SHARED_MAX);
}
