/* SPDX-License-Identifier: MIT */
/* Which acquired blocks are nodes of a snapshot. */
#include <criterion/criterion.h>

#include "reach/nodes.h"

#define BLOCKS 1000

static struct heap_live live;
static struct heap_nodes nodes;
static struct reach_survivors survivors;

static void begin(void)
{
    cr_assert_eq(heap_live_init(&live), TTD_OK);
}

static void finish(void)
{
    reach_survivors_free(&survivors);
    heap_nodes_free(&nodes);
    heap_live_free(&live);
}

TestSuite(survivors, .init = begin, .fini = finish);

/* Blocks at multiples of 48, acquired by events that are `distance` apart. */
static void make(uint64_t distance)
{
    for (uint64_t i = 1; i <= BLOCKS; i++) {
        struct heap_block block = {.address = i * 48, .size = 8, .heap = 1, .event = i * distance};
        uint32_t record;
        struct heap_block replaced;
        uint32_t hash = heap_live_hash(&live, block.address);
        cr_assert_eq(heap_live_record(&live, block.address, hash, &record), TTD_OK);
        cr_assert_eq(heap_live_acquire(&live, &record, &block, &replaced), TTD_OK);
    }
    cr_assert_eq(heap_nodes_copy(&nodes, &live), TTD_OK);
    cr_assert_eq(reach_survivors_init(&survivors, &nodes), TTD_OK);
}

/* Counts the events up to `last` that seem to have acquired a node at an address. */
static void expect(uint64_t distance, uint64_t last)
{
    for (uint64_t event = 1; event <= last; event++) {
        uint64_t i = event / distance;
        struct heap_block block = {.address = i * 48, .event = event};
        bool is_node = event % distance == 0 && i <= BLOCKS;
        cr_assert_eq(reach_survivors_have(&survivors, &block), is_node, "event %llu",
                     (unsigned long long)event);
    }
}

Test(survivors, of_few_events_are_known_by_event)
{
    make(3);
    cr_assert(survivors.is_exact);
    expect(3, 20000);
}

Test(survivors, of_many_events_are_told_from_those_that_share_a_bit)
{
    make(1000);
    cr_assert_not(survivors.is_exact);
    expect(1000, 1100000);
}

Test(survivors, of_no_nodes_there_are_none)
{
    cr_assert_eq(heap_nodes_copy(&nodes, &live), TTD_OK);
    cr_assert_eq(reach_survivors_init(&survivors, &nodes), TTD_OK);
    cr_assert_not(reach_survivors_have(&survivors, &(struct heap_block){.event = 1}));
}
