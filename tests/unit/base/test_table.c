/* SPDX-License-Identifier: MIT */
/* Memory for tables, and arrays that grow. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/grow.h"
#include "base/pages.h"
#include "base/table.h"

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
    for (size_t i = from; i < to; i++)
        cr_assert_eq(table[i], expected);
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
