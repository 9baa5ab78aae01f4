/* SPDX-License-Identifier: MIT */
/* Tables of integers whose fields are as wide as their values need. */
#include <criterion/criterion.h>

#include "base/rows.h"

static const uint64_t highest[] = {0,       1,          255,        256,       65535,
                                   1 << 23, UINT32_MAX, UINT64_MAX, 1ull << 40};

#define FIELDS (sizeof highest / sizeof *highest)
#define ROWS   300

/* A value of a row, up to the highest. */
static uint64_t value_of(size_t row, unsigned field)
{
    return row == ROWS - 1 ? highest[field]
                           : (row * 0x9e3779b97f4a7c15 >> field) & (highest[field] / 2);
}

static void make(struct rows *rows, uint64_t lowest)
{
    struct row_range ranges[FIELDS];
    for (unsigned field = 0; field < FIELDS; field++) {
        ranges[field] = row_range_none();
        for (size_t row = 0; row < ROWS; row++)
            row_range_widen(&ranges[field], value_of(row, field) + lowest);
    }
    cr_assert_eq(rows_init(rows, ROWS, ranges, FIELDS), TTD_OK);
}

/* Written from the last to the first, so that each row is written beside rows that have values. */
static void fill(struct rows *rows, uint64_t lowest)
{
    for (size_t row = ROWS; row-- > 0;) {
        for (unsigned field = 0; field < FIELDS; field++)
            rows_set(rows, row, field, value_of(row, field) + lowest);
    }
}

static void expect(const struct rows *rows, uint64_t lowest)
{
    for (size_t row = 0; row < ROWS; row++) {
        for (unsigned field = 0; field < FIELDS; field++)
            cr_assert_eq(rows_get(rows, row, field), value_of(row, field) + lowest,
                         "row %zu, field %u", row, field);
    }
}

Test(rows, keep_their_values)
{
    struct rows rows;
    make(&rows, 0);
    fill(&rows, 0);
    expect(&rows, 0);
    fill(&rows, 0);
    expect(&rows, 0);
    rows_free(&rows);
}

Test(rows, are_as_wide_as_the_values_need)
{
    static const unsigned bytes[FIELDS] = {0, 1, 1, 2, 2, 3, 4, 8, 6};
    struct rows rows;
    unsigned size = 0;
    make(&rows, 0);
    for (unsigned field = 0; field < FIELDS; field++)
        size += bytes[field];
    cr_assert_eq(rows.row_size, size);
    rows_free(&rows);
}

Test(rows, take_no_more_for_values_that_are_large_but_near_each_other)
{
    struct row_range range = {UINT64_MAX - 200, UINT64_MAX};
    struct rows rows;
    cr_assert_eq(rows_init(&rows, 2, &range, 1), TTD_OK);
    cr_assert_eq(rows.row_size, 1);
    rows_set(&rows, 0, 0, UINT64_MAX);
    rows_set(&rows, 1, 0, UINT64_MAX - 200);
    cr_assert_eq(rows_get(&rows, 0, 0), UINT64_MAX);
    cr_assert_eq(rows_get(&rows, 1, 0), UINT64_MAX - 200);
    rows_free(&rows);
}

Test(rows, of_none_there_are_none)
{
    struct row_range range = row_range_none();
    struct rows rows;
    cr_assert_eq(rows_init(&rows, 0, &range, 1), TTD_OK);
    cr_assert_eq(rows.row_size, 0);
    rows_free(&rows);
    rows_free(&rows);
}

Test(rows, too_many_are_refused)
{
    struct row_range range = {0, UINT64_MAX};
    struct rows rows;
    cr_assert_eq(rows_init(&rows, SIZE_MAX / 8, &range, 1), TTD_ERROR_NO_MEMORY);
}
