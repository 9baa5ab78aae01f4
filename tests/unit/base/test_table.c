/* SPDX-License-Identifier: MIT */
/* Memory for tables, and arrays that grow. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/grow.h"
#include "base/table.h"
#include "support/entropy.h"

/* Sizes around those at which a table becomes pages of its own, and a large page is full. */
static const size_t sizes[] = {1,
                               64,
                               ((size_t)128 << 10) - 1,
                               (size_t)128 << 10,
                               LARGE_PAGE - 1,
                               LARGE_PAGE,
                               LARGE_PAGE + 1,
                               4 * LARGE_PAGE};
#define SIZES (sizeof sizes / sizeof *sizes)

static void expect_bytes(const uint8_t *table, size_t from, size_t to, uint8_t expected)
{
    /* Each byte is the one before it; a loop takes a second of a sanitizer's time. */
    if (from < to) {
        cr_assert_eq(table[from], expected);
        cr_assert_eq(memcmp(table + from, table + from + 1, to - from - 1), 0);
    }
}

Test(table, is_zero_at_first)
{
    for (size_t i = 0; i < SIZES; i++) {
        uint8_t *table = table_resize(NULL, 0, sizes[i]);
        expect_bytes(table, 0, sizes[i], 0);
        table_free(table, sizes[i]);
    }
}

Test(table, keeps_what_it_had_and_is_zero_behind_when_it_grows)
{
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t j = i + 1; j < SIZES; j++) {
            uint8_t *table = table_resize(NULL, 0, sizes[i]);
            memset(table, 0x5A, sizes[i]);

            table = table_resize(table, sizes[i], sizes[j]);

            expect_bytes(table, 0, sizes[i], 0x5A);
            expect_bytes(table, sizes[i], sizes[j], 0);
            table_free(table, sizes[j]);
        }
    }
}

/* A table of the random test below: its bytes are all `byte`, up to its size. */
struct filled {
    uint8_t *table;
    size_t size;
    uint8_t byte;
};

static void grow_filled(struct filled *filled, size_t size)
{
    filled->table = table_resize(filled->table, filled->size, size);
    cr_assert_not_null(filled->table);
    expect_bytes(filled->table, 0, filled->size, filled->byte);
    expect_bytes(filled->table, filled->size, size, 0);
    memset(filled->table, filled->byte, size);
    filled->size = size;
}

static void free_filled(struct filled *filled, uint64_t choice)
{
    if (choice % 3 == 0)
        table_give_back(filled->table, filled->size);
    else if (choice % 3 == 1)
        table_free_used(filled->table, filled->size, (size_t)(choice / 3 % (filled->size + 1)));
    else
        table_free(filled->table, filled->size);
    *filled = (struct filled){.byte = filled->byte};
}

/* Tables take over each other's pages, in whole and in part. */
Test(table, has_its_own_contents_whatever_others_had)
{
    struct entropy entropy = entropy_of_seed(1);
    struct filled tables[8] = {0};
    for (size_t i = 0; i < 8; i++)
        tables[i].byte = (uint8_t)(i + 1);
    for (int i = 0; i < 150; i++) {
        struct filled *any = &tables[entropy_next(&entropy) % 8];
        uint64_t choice = entropy_next(&entropy);
        if (any->size > 3 * LARGE_PAGE || (any->table && choice % 4 == 0))
            free_filled(any, choice / 4);
        else
            grow_filled(any, any->size + 1 + choice / 4 % (2 * LARGE_PAGE));
    }
    for (size_t i = 0; i < 8; i++)
        expect_bytes(tables[i].table, 0, tables[i].size, tables[i].byte);
}

Test(table, is_refused_where_its_size_would_wrap)
{
    cr_assert_null(table_resize(NULL, 0, SIZE_MAX));
    cr_assert_null(table_resize(NULL, 0, SIZE_MAX - LARGE_PAGE));
}

Test(table, is_untouched_where_it_cannot_grow)
{
    uint8_t *table = table_resize(NULL, 0, 64);
    memset(table, 0x5A, 64);

    cr_assert_null(table_resize(table, 64, SIZE_MAX));

    expect_bytes(table, 0, 64, 0x5A);
    table_free(table, 64);
}

Test(table, doubles)
{
    cr_assert_eq(table_next(64, 16), 128);
    cr_assert_eq(table_next(1 << 20, 16), 1 << 21);
}

Test(table, fills_a_large_page_rather_than_a_part_of_one)
{
    size_t next = table_next(((size_t)64 << 10) / 16, 16);
    cr_assert_eq(next * 16, LARGE_PAGE);
}

Test(array, has_room_for_what_is_asked)
{
    void *array = NULL;
    size_t capacity = 0;
    cr_assert_eq(grow_array(&array, &capacity, 1000, 8), TTD_OK);
    cr_assert_geq(capacity, 1000);
    memset(array, 0, capacity * 8);
    free(array);
}

Test(array, grows_in_few_steps)
{
    void *array = NULL;
    size_t capacity = 0;
    unsigned steps = 0;
    for (size_t count = 1; count <= 100000; count++) {
        size_t before = capacity;
        cr_assert_eq(grow_array(&array, &capacity, count, 1), TTD_OK);
        steps += capacity != before;
    }
    cr_assert_lt(steps, 20);
    free(array);
}

Test(array, is_untouched_where_its_size_would_wrap)
{
    void *array = NULL;
    size_t capacity = 0;
    cr_assert_eq(grow_array(&array, &capacity, 1, 8), TTD_OK);
    void *array_before = array;
    size_t capacity_before = capacity;

    cr_assert_eq(grow_array(&array, &capacity, SIZE_MAX, 1), TTD_ERROR_NO_MEMORY);
    cr_assert_eq(grow_array(&array, &capacity, SIZE_MAX / 8 + 1, 8), TTD_ERROR_NO_MEMORY);

    cr_assert_eq(array, array_before);
    cr_assert_eq(capacity, capacity_before);
    free(array);
}
