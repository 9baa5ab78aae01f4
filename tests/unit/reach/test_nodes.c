/* SPDX-License-Identifier: MIT */
/* The blocks of a snapshot, and which of them an address lies in. */
#include <criterion/criterion.h>

#include "reach/nodes.h"
#include "support/entropy.h"

static struct heap_live live;
static struct heap_nodes nodes;

static void begin(void)
{
    cr_assert_eq(heap_live_init(&live), TTD_OK);
}

static void finish(void)
{
    heap_nodes_free(&nodes);
    heap_live_free(&live);
}

TestSuite(nodes, .init = begin, .fini = finish);

static void acquire(uint64_t address, uint64_t size, uint64_t event)
{
    uint32_t record;
    struct heap_block replaced;
    struct heap_block block = {.address = address, .size = size, .heap = 1, .event = event};
    cr_assert_eq(heap_live_record(&live, address, heap_live_hash(&live, address), &record), TTD_OK);
    cr_assert_eq(heap_live_acquire(&live, &record, &block, &replaced), TTD_OK);
}

static void take(void)
{
    cr_assert_eq(heap_nodes_copy(&nodes, &live), TTD_OK);
    cr_assert_eq(nodes.count, live.count);
}

/* The block that it lies in, found among all. */
static uint32_t find(uint64_t address)
{
    for (uint32_t i = 0; i < nodes.count; i++) {
        struct heap_block block = heap_nodes_block(&nodes, i);
        if (address >= block.address && address - block.address < (block.size ? block.size : 1))
            return i;
    }
    return HEAP_NO_NODE;
}

Test(nodes, of_none_there_are_none)
{
    take();
    cr_assert_eq(heap_nodes_at(&nodes, 0), HEAP_NO_NODE);
    cr_assert_eq(heap_nodes_at(&nodes, UINT64_MAX), HEAP_NO_NODE);
}

Test(nodes, are_in_the_order_of_addresses)
{
    acquire(0x3000, 8, 1);
    acquire(0x1000, 8, 2);
    acquire(0xffffffffffff0000, 8, 3);
    take();
    cr_assert_eq(heap_nodes_address(&nodes, 0), 0x1000);
    cr_assert_eq(heap_nodes_address(&nodes, 1), 0x3000);
    cr_assert_eq(heap_nodes_address(&nodes, 2), 0xffffffffffff0000);
}

Test(nodes, begin_with_the_first_byte_and_end_with_the_last)
{
    acquire(0x1000, 16, 1);
    acquire(0x1020, 0, 2);
    acquire(UINT64_MAX - 15, 16, 3);
    take();
    cr_assert_eq(heap_nodes_at(&nodes, 0xfff), HEAP_NO_NODE);
    cr_assert_eq(heap_nodes_at(&nodes, 0x1000), 0);
    cr_assert_eq(heap_nodes_at(&nodes, 0x100f), 0);
    cr_assert_eq(heap_nodes_at(&nodes, 0x1010), HEAP_NO_NODE);
    cr_assert_eq(heap_nodes_at(&nodes, 0x1020), 1);
    cr_assert_eq(heap_nodes_at(&nodes, 0x1021), HEAP_NO_NODE);
    cr_assert_eq(heap_nodes_at(&nodes, UINT64_MAX), 2);
}

Test(nodes, keep_all_that_is_known_of_a_block)
{
    const struct heap_block blocks[] = {{.address = 0x1000,
                                         .size = 16,
                                         .event = 7,
                                         .allocated = {3, 9},
                                         .thread = 1,
                                         .stack = 2,
                                         .heap = 3,
                                         .action = TTD_ACTION_ALLOC,
                                         .api = TTD_API_CALLOC},
                                        {.address = 0x7f0000001000,
                                         .size = UINT64_MAX,
                                         .event = UINT64_C(1) << 40,
                                         .allocated = {UINT64_C(1) << 63, 0},
                                         .thread = 70000,
                                         .stack = 0xfffffffe,
                                         .heap = 3,
                                         .action = TTD_ACTION_REALLOC,
                                         .api = TTD_API_REALLOC}};
    for (size_t i = 0; i < 2; i++) {
        uint32_t record;
        struct heap_block replaced;
        uint64_t address = blocks[i].address;
        cr_assert_eq(heap_live_record(&live, address, heap_live_hash(&live, address), &record),
                     TTD_OK);
        cr_assert_eq(heap_live_acquire(&live, &record, &blocks[i], &replaced), TTD_OK);
    }
    take();
    for (uint32_t i = 0; i < 2; i++) {
        struct heap_block block = heap_nodes_block(&nodes, i);
        cr_assert_eq(block.address, blocks[i].address);
        cr_assert_eq(block.size, blocks[i].size);
        cr_assert_eq(block.event, blocks[i].event);
        cr_assert_eq(ttd_position_compare(block.allocated, blocks[i].allocated), 0);
        cr_assert_eq(block.thread, blocks[i].thread);
        cr_assert_eq(block.stack, blocks[i].stack);
        cr_assert_eq(block.heap, blocks[i].heap);
        cr_assert_eq(block.action, blocks[i].action);
        cr_assert_eq(block.api, blocks[i].api);
    }
}

/* Copying takes the index of the live blocks away; made again, it finds them all. */
Test(nodes, leave_live_blocks_that_are_found_again)
{
    for (uint64_t i = 1; i <= 5000; i++)
        acquire(i * 48, 40, i);
    cr_assert(heap_live_release(&live, 0));
    take();
    cr_assert_eq(heap_live_make_index(&live), TTD_OK);
    cr_assert_null(heap_live_find(&live, 48, TTD_NONE));
    for (uint64_t i = 2; i <= 5000; i++)
        cr_assert_eq(heap_live_find(&live, i * 48, TTD_NONE)->event, i);
    acquire(48, 40, 5001);
    cr_assert_eq(heap_live_find(&live, 48, TTD_NONE)->event, 5001);
}

Test(nodes, know_their_blocks_by_address_and_event)
{
    acquire(0x1000, 16, 7);
    take();
    cr_assert_eq(heap_nodes_of(&nodes, &(struct heap_block){.address = 0x1000, .event = 7}), 0);
    cr_assert_eq(heap_nodes_of(&nodes, &(struct heap_block){.address = 0x1000, .event = 8}),
                 HEAP_NO_NODE);
    cr_assert_eq(heap_nodes_of(&nodes, &(struct heap_block){.address = 0x1008, .event = 7}),
                 HEAP_NO_NODE);
}

/* Small blocks beside each other, far apart, and large ones between them. */
Test(nodes, are_found_wherever_they_are)
{
    static const uint64_t gaps[] = {0, 0, 0, 8, 100, 5000, 300000};
    static const uint64_t sizes[] = {8, 16, 24, 48, 1000, 70000, 500000};
    struct entropy entropy = entropy_of_seed(1);
    uint64_t address = 0x10000;
    for (uint64_t event = 1; event <= 3000; event++) {
        /* Long runs of small blocks, so that areas are dense, then sparse ones. */
        uint64_t choices = event / 500 % 2 ? 7 : 4;
        address += gaps[entropy_next(&entropy) % choices];
        uint64_t size = sizes[entropy_next(&entropy) % choices];
        acquire(address, size, event);
        address += size;
    }
    take();
    size_t in_blocks = 0;
    for (int i = 0; i < 20000; i++) {
        uint32_t any = (uint32_t)(entropy_next(&entropy) % nodes.count);
        uint64_t wanted = i % 2 ? heap_nodes_address(&nodes, any) + entropy_next(&entropy) % 64
                                : 0x8000 + entropy_next(&entropy) % address;
        uint32_t expected = find(wanted);
        in_blocks += expected != HEAP_NO_NODE;
        cr_assert_eq(heap_nodes_at(&nodes, wanted), expected, "%llx", (unsigned long long)wanted);
    }
    cr_assert_gt(in_blocks, 1000);
    cr_assert_lt(in_blocks, 19000);
}
