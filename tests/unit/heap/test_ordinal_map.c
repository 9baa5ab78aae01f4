/* SPDX-License-Identifier: MIT */
/* From the ordinals of a chunk's addresses to entries of the table of live blocks. */
#include <criterion/criterion.h>

#include "heap/replay.h"

#define CHUNK 64
#define MANY  1000

static struct heap_live live;
static struct heap_ordinal_map ordinals;

static void begin(void)
{
    cr_assert_eq(heap_live_init(&live), TTD_OK);
    heap_ordinal_map_init(&ordinals);
}

static void finish(void)
{
    heap_ordinal_map_free(&ordinals);
    heap_live_free(&live);
}

TestSuite(ordinal_map, .init = begin, .fini = finish);

static enum ttd_status add(const uint64_t *addresses, uint32_t first, size_t count)
{
    struct ttd_batch batch = {.kind = TTD_KIND_EVENTS,
                              .addresses = addresses,
                              .first_ordinal = first,
                              .address_count = count};
    return heap_ordinal_map_add(&ordinals, &live, &batch);
}

static uint64_t address_of(uint32_t ordinal)
{
    return live.blocks[heap_ordinal_map_get(&ordinals, ordinal)].address;
}

Test(ordinal_map, has_the_entry_of_each_address)
{
    static uint64_t addresses[MANY];
    for (uint32_t i = 0; i < MANY; i++)
        addresses[i] = 0x1000 + 16 * (uint64_t)i;
    heap_ordinal_map_begin(&ordinals, &live, CHUNK);

    cr_assert_eq(add(addresses, 0, MANY), TTD_OK);

    for (uint32_t i = 0; i < MANY; i++)
        cr_assert_eq(address_of(i), addresses[i]);
}

Test(ordinal_map, has_one_entry_for_ordinals_of_the_same_address)
{
    const uint64_t addresses[] = {0x10, 0x20, 0x10};
    heap_ordinal_map_begin(&ordinals, &live, CHUNK);

    cr_assert_eq(add(addresses, 0, 3), TTD_OK);

    cr_assert_eq(heap_ordinal_map_get(&ordinals, 0), heap_ordinal_map_get(&ordinals, 2));
    cr_assert_eq(live.used_records, 2);
}

Test(ordinal_map, takes_one_batch_after_the_other)
{
    const uint64_t addresses[] = {0x10, 0x20, 0x30};
    heap_ordinal_map_begin(&ordinals, &live, CHUNK);

    cr_assert_eq(add(addresses, 0, 2), TTD_OK);
    cr_assert_eq(add(addresses + 2, 2, 1), TTD_OK);

    cr_assert_eq(address_of(0), 0x10);
    cr_assert_eq(address_of(2), 0x30);
}

Test(ordinal_map, takes_a_batch_that_it_has_in_part)
{
    const uint64_t addresses[] = {0x10, 0x20, 0x30};
    heap_ordinal_map_begin(&ordinals, &live, CHUNK);
    add(addresses, 0, 2);

    cr_assert_eq(add(addresses + 1, 1, 2), TTD_OK);

    cr_assert_eq(ordinals.count, 3);
    cr_assert_eq(address_of(1), 0x20);
    cr_assert_eq(address_of(2), 0x30);
}

Test(ordinal_map, refuses_a_batch_after_a_missing_one)
{
    const uint64_t addresses[] = {0x10, 0x20, 0x30};
    heap_ordinal_map_begin(&ordinals, &live, CHUNK);
    add(addresses, 0, 1);
    cr_assert_eq(add(addresses + 2, 2, 1), TTD_ERROR_ARGUMENT);
}

Test(ordinal_map, keeps_all_while_the_chunk_is_the_same)
{
    const uint64_t address = 0x10;
    heap_ordinal_map_begin(&ordinals, &live, CHUNK);
    add(&address, 0, 1);

    heap_ordinal_map_begin(&ordinals, &live, CHUNK);

    cr_assert_eq(ordinals.count, 1);
}

Test(ordinal_map, forgets_all_at_another_chunk)
{
    const uint64_t address = 0x10;
    heap_ordinal_map_begin(&ordinals, &live, CHUNK);
    add(&address, 0, 1);

    heap_ordinal_map_begin(&ordinals, &live, CHUNK + 8);

    cr_assert_eq(ordinals.count, 0);
}

Test(ordinal_map, has_a_littered_table_swept_at_another_chunk)
{
    static uint64_t addresses[2 * HEAP_LITTER_MAX];
    for (uint32_t i = 0; i < 2 * HEAP_LITTER_MAX; i++)
        addresses[i] = 0x1000 + 16 * (uint64_t)i;
    heap_ordinal_map_begin(&ordinals, &live, CHUNK);
    add(addresses, 0, 2 * HEAP_LITTER_MAX);
    cr_assert(heap_live_is_littered(&live));

    heap_ordinal_map_begin(&ordinals, &live, CHUNK + 8);

    cr_assert_eq(live.used_records, 0);
}
