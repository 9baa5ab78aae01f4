/* SPDX-License-Identifier: MIT */
/* Sorting many numbers. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/sort.h"
#include "support/entropy.h"

#define COUNT 5000
/* So many that two threads sort them; most come twice or more often. */
#define MANY 500001
/* Bytes of the largest record. */

static struct sort_key keys[COUNT];
static struct sort_key spare[COUNT];

/* Numbers of that many bits, each belonging to its place. */
static void fill(uint64_t seed, unsigned bits, unsigned shift)
{
    struct entropy entropy = entropy_of_seed(seed);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t value = bits ? entropy_next(&entropy) >> (64 - bits) : 0;
        keys[i] = (struct sort_key){.value = value << shift, .index = i};
    }
}

/* In order, and what is equal as it came. */
static void expect_sorted(size_t count)
{
    for (size_t i = 1; i < count; i++) {
        cr_assert_leq(keys[i - 1].value, keys[i].value);
        if (keys[i - 1].value == keys[i].value)
            cr_assert_lt(keys[i - 1].index, keys[i].index);
    }
}

static void expect_every_item_once(size_t count)
{
    static unsigned seen[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        seen[i] = 0;
    for (size_t i = 0; i < count; i++)
        seen[keys[i].index]++;
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(seen[i], 1);
}

Test(sort, orders_numbers_of_any_size_and_keeps_equal_ones_in_order)
{
    for (unsigned bits = 0; bits <= 64; bits++) {
        fill(bits, bits, 0);
        sort_keys(keys, spare, COUNT);
        expect_sorted(COUNT);
        expect_every_item_once(COUNT);
    }
}

Test(sort, orders_numbers_that_differ_in_high_digits_only)
{
    for (unsigned shift = 0; shift <= 56; shift++) {
        fill(shift, 8, shift);
        sort_keys(keys, spare, COUNT);
        expect_sorted(COUNT);
    }
}

Test(sort, orders_many_numbers)
{
    static struct sort_key many[MANY], room[MANY];
    struct entropy entropy = entropy_of_seed(1);
    for (uint32_t i = 0; i < MANY; i++)
        many[i] = (struct sort_key){.value = entropy_next(&entropy) >> 46, .index = i};
    sort_keys(many, room, MANY);
    for (size_t i = 1; i < MANY; i++)
        cr_assert(many[i - 1].value < many[i].value ||
                  (many[i - 1].value == many[i].value && many[i - 1].index < many[i].index));
}

Test(sort, keeps_what_belongs_to_a_number)
{
    for (uint32_t i = 0; i < COUNT; i++)
        keys[i] = (struct sort_key){.value = COUNT - i, .index = i};
    sort_keys(keys, spare, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert_eq(keys[i].value + keys[i].index, COUNT);
}

Test(sort, touches_nothing_behind_what_it_sorts)
{
    fill(1, 64, 0);
    struct sort_key behind = keys[100];
    sort_keys(keys, spare, 100);
    expect_sorted(100);
    cr_assert_eq(keys[100].value, behind.value);
    cr_assert_eq(keys[100].index, behind.index);
}

/* Records of some bytes, which are the low byte of the number where each was at first. */
static void expect_moved_records(size_t size, size_t count)
{
    static unsigned char records[COUNT * SORT_RECORD_MAX];
    static uint32_t places[COUNT];
    for (size_t i = 0; i < count; i++) {
        places[i] = keys[i].index;
        memset(records + i * size, (int)(i & 0xff), size);
    }
    memset(records + count * size, 0xa5, SORT_RECORD_MAX);
    sort_records(records, size, keys, count);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(keys[i].index, i);
        for (size_t k = 0; k < size; k++)
            cr_assert_eq(records[i * size + k], places[i] & 0xff);
    }
    for (size_t k = 0; k < SORT_RECORD_MAX; k++)
        cr_assert_eq(records[count * size + k], 0xa5);
}

Test(sort, moves_each_record_to_its_key)
{
    static const size_t sizes[] = {1, 24, 64, 120, SORT_RECORD_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fill(i, 64, 0);
        sort_keys(keys, spare, COUNT - 1);
        expect_moved_records(sizes[i], COUNT - 1);
        /* In order, backwards, and each to the place of the one before. */
        expect_moved_records(sizes[i], COUNT - 1);
        for (uint32_t k = 0; k < 100; k++)
            keys[k].index = 99 - k;
        expect_moved_records(sizes[i], 100);
        for (uint32_t k = 0; k < 100; k++)
            keys[k].index = (k + 1) % 100;
        expect_moved_records(sizes[i], 100);
    }
}

Test(sort, of_nothing_or_one_number_does_nothing)
{
    fill(1, 64, 0);
    uint64_t value = keys[0].value;
    sort_keys(keys, spare, 0);
    sort_keys(keys, spare, 1);
    cr_assert_eq(keys[0].value, value);
}
