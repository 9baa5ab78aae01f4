/* SPDX-License-Identifier: MIT */
/* Counting the rows whose address is not above another: against a search among all. */
#include <criterion/criterion.h>

#include "reach/address_index.h"
#include "support/entropy.h"

#define ROWS_MAX 20000

static struct packed_table table;
static struct address_index index_of_rows;
static uint64_t addresses[ROWS_MAX];
static uint32_t count;

static void add(uint64_t address)
{
    cr_assert_lt(count, ROWS_MAX);
    addresses[count++] = address;
}

static void make(void)
{
    struct value_range range = value_range_none();
    for (uint32_t i = 0; i < count; i++)
        value_range_widen(&range, addresses[i]);
    cr_assert_eq(packed_table_init(&table, count, &range, 1), TTD_OK);
    for (uint32_t i = 0; i < count; i++)
        packed_table_set(&table, i, 0, addresses[i]);
    cr_assert_eq(address_index_init(&index_of_rows, &table, 0, count), TTD_OK);
}

static void finish(void)
{
    address_index_free(&index_of_rows);
    packed_table_free(&table);
}

TestSuite(address_index, .fini = finish);

static uint32_t expected(uint64_t address)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (addresses[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Looks up what is near the rows, one by one and all together, by an index that is shared. */
static void look_up(void)
{
    struct entropy entropy = entropy_of_seed(7);
    struct address_index shared;
    cr_assert_eq(address_index_share(&shared, &index_of_rows), TTD_OK);
    for (uint32_t i = 0; i < count; i += ADDRESS_BATCH / 4) {
        uint64_t wanted[ADDRESS_BATCH];
        uint32_t found[ADDRESS_BATCH];
        for (size_t j = 0; j < ADDRESS_BATCH; j++) {
            uint64_t any = addresses[entropy_next(&entropy) % count];
            wanted[j] = any + entropy_next(&entropy) % 200 - 100;
        }
        address_index_count_batch(&shared, &table, wanted, ADDRESS_BATCH, found);
        for (size_t j = 0; j < ADDRESS_BATCH; j++) {
            cr_assert_eq(found[j], expected(wanted[j]), "%llx", (unsigned long long)wanted[j]);
            cr_assert_eq(address_index_count(&index_of_rows, &table, wanted[j]), found[j]);
        }
    }
    cr_assert_eq(address_index_count(&index_of_rows, &table, 0), expected(0));
    cr_assert_eq(address_index_count(&index_of_rows, &table, UINT64_MAX), count);
    address_index_unshare(&shared);
}

/* Rows in two far parts of the address space, every so many bytes, with gaps. */
static void add_many(uint64_t alignment)
{
    struct entropy entropy = entropy_of_seed(alignment);
    uint64_t address = 0x10000;
    for (uint32_t i = 0; i < ROWS_MAX; i++) {
        if (i == ROWS_MAX / 2)
            address = UINT64_C(0x7f0000000000);
        address += alignment * (1 + entropy_next(&entropy) % 8);
        if (entropy_next(&entropy) % 1000 == 0)
            address += 1 << 20;
        add(address);
    }
}

Test(address_index, counts_rows_at_multiples_of_16)
{
    add_many(16);
    make();
    cr_assert_eq(index_of_rows.granule_bits, 4);
    look_up();
}

Test(address_index, counts_rows_at_multiples_of_8)
{
    add_many(8);
    make();
    cr_assert_eq(index_of_rows.granule_bits, 3);
    look_up();
}

Test(address_index, counts_rows_of_any_alignment)
{
    add_many(3);
    make();
    look_up();
}

/* One row in a thousand is not where a granule begins, or where another row is. */
Test(address_index, counts_rows_a_few_of_which_share_a_granule)
{
    add_many(16);
    for (uint32_t i = 1000; i < count; i += 1000)
        addresses[i] = addresses[i - 1] + (i / 1000 % 2 ? 4 : 0);
    make();
    look_up();
}

Test(address_index, counts_rows_at_both_ends)
{
    add(0);
    for (uint64_t i = 0; i < 300; i++)
        add(UINT64_MAX - 15 - (299 - i) * 16);
    make();
    look_up();
}

Test(address_index, counts_none_of_none)
{
    make();
    cr_assert_eq(address_index_count(&index_of_rows, &table, 0), 0);
    cr_assert_eq(address_index_count(&index_of_rows, &table, UINT64_MAX), 0);
}
