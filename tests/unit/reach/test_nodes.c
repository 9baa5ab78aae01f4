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
    bool has_replaced;
    struct heap_block block = {.address = address, .size = size, .heap = 1, .event = event};
    cr_assert_eq(heap_live_record(&live, address, heap_live_hash(&live, address), &record), TTD_OK);
    cr_assert_eq(heap_live_acquire(&live, record, &block, &has_replaced), TTD_OK);
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
        uint64_t size = nodes.blocks[i].size ? nodes.blocks[i].size : 1;
        if (address >= nodes.blocks[i].address && address - nodes.blocks[i].address < size)
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
    cr_assert_eq(nodes.blocks[0].address, 0x1000);
    cr_assert_eq(nodes.blocks[1].address, 0x3000);
    cr_assert_eq(nodes.blocks[2].address, 0xffffffffffff0000);
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
        uint64_t wanted = i % 2 ? nodes.blocks[entropy_next(&entropy) % nodes.count].address +
                                      entropy_next(&entropy) % 64
                                : 0x8000 + entropy_next(&entropy) % address;
        uint32_t expected = find(wanted);
        in_blocks += expected != HEAP_NO_NODE;
        cr_assert_eq(heap_nodes_at(&nodes, wanted), expected, "%llx", (unsigned long long)wanted);
    }
    cr_assert_gt(in_blocks, 1000);
    cr_assert_lt(in_blocks, 19000);
}
