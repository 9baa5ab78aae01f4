/* SPDX-License-Identifier: MIT */
/* Which block an address belongs to. */
#include <criterion/criterion.h>

#include "heap/heap_live.h"

static struct heap_live live;

static void begin(void)
{
    cr_assert_eq(heap_live_init(&live), TTD_OK);
}

static void finish(void)
{
    heap_live_free(&live);
}

TestSuite(locate, .init = begin, .fini = finish);

static void acquire(uint64_t address, uint64_t size)
{
    uint32_t entry;
    struct heap_block replaced;
    struct heap_block block = {.address = address, .size = size, .heap = 1};
    cr_assert_eq(heap_live_record(&live, address, heap_live_hash(&live, address), &entry), TTD_OK);
    cr_assert_eq(heap_live_acquire(&live, &entry, &block, &replaced), TTD_OK);
}

/* The address of the block that it lies in, or 0. */
static uint64_t locate(uint64_t address)
{
    const struct heap_block *block = heap_live_containing(&live, address);
    return block ? block->address : 0;
}

Test(locate, finds_the_block_from_its_first_to_its_last_byte)
{
    acquire(0x100, 16);
    cr_assert_eq(locate(0xFF), 0);
    cr_assert_eq(locate(0x100), 0x100);
    cr_assert_eq(locate(0x10F), 0x100);
    cr_assert_eq(locate(0x110), 0);
}

Test(locate, finds_a_block_of_no_bytes_at_its_address)
{
    acquire(0x100, 0);
    cr_assert_eq(locate(0x100), 0x100);
    cr_assert_eq(locate(0x101), 0);
}

Test(locate, finds_the_block_that_begins_last_of_several)
{
    acquire(0x100, 256);
    acquire(0x140, 16);
    acquire(0x120, 256);
    cr_assert_eq(locate(0x148), 0x140);
    cr_assert_eq(locate(0x158), 0x120);
}

Test(locate, finds_a_block_that_reaches_beyond_64_bits)
{
    acquire(0x100, UINT64_MAX);
    cr_assert_eq(locate(UINT64_MAX), 0x100);
    cr_assert_eq(locate(0xFF), 0);
}
