/* SPDX-License-Identifier: MIT */
/* Tables of integers whose fields are as wide as their values need. */
#include <criterion/criterion.h>

#include "reach/address_index.h"

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

static void make(struct packed_table *table, uint64_t lowest)
{
    struct value_range ranges[FIELDS];
    for (unsigned field = 0; field < FIELDS; field++) {
        ranges[field] = value_range_none();
        for (size_t row = 0; row < ROWS; row++)
            value_range_widen(&ranges[field], value_of(row, field) + lowest);
    }
    cr_assert_eq(packed_table_init(table, ROWS, ranges, FIELDS), TTD_OK);
}

/* Written from the last to the first, so that each row is written beside rows that have values. */
static void fill(struct packed_table *table, uint64_t lowest)
{
    for (size_t row = ROWS; row-- > 0;) {
        for (unsigned field = 0; field < FIELDS; field++)
            packed_table_set(table, row, field, value_of(row, field) + lowest);
    }
}

static void expect(const struct packed_table *table, uint64_t lowest)
{
    for (size_t row = 0; row < ROWS; row++) {
        for (unsigned field = 0; field < FIELDS; field++)
            cr_assert_eq(packed_table_get(table, row, field), value_of(row, field) + lowest,
                         "row %zu, field %u", row, field);
    }
}

Test(table, keep_their_values)
{
    struct packed_table table;
    make(&table, 0);
    fill(&table, 0);
    expect(&table, 0);
    fill(&table, 0);
    expect(&table, 0);
    packed_table_free(&table);
}

/* The rows up to `end` are filled while those behind have values already. */
static void expect_filled_up_to(size_t end, unsigned fields)
{
    struct packed_table table;
    struct value_range ranges[FIELDS];
    uint64_t values[FIELDS];
    for (unsigned field = 0; field < fields; field++)
        ranges[field] = (struct value_range){0, highest[field]};
    cr_assert_eq(packed_table_init(&table, ROWS, ranges, fields), TTD_OK);
    for (size_t row = ROWS; row-- > end;) {
        for (unsigned field = 0; field < fields; field++)
            packed_table_set(&table, row, field, value_of(row, field));
    }
    for (size_t row = 0; row < end; row++) {
        for (unsigned field = 0; field < fields; field++)
            values[field] = value_of(row, field);
        packed_table_fill(&table, row, end, values, fields);
    }
    for (size_t row = 0; row < ROWS; row++) {
        for (unsigned field = 0; field < fields; field++)
            cr_assert_eq(packed_table_get(&table, row, field), value_of(row, field),
                         "up to %zu: row %zu, field %u", end, row, field);
    }
    packed_table_free(&table);
}

Test(table, may_be_filled_in_parts)
{
    /* Rows of one byte, of two, and of 27. */
    for (size_t end = 0; end <= ROWS; end += end < 20 ? 1 : 40) {
        expect_filled_up_to(end, 2);
        expect_filled_up_to(end, 3);
        expect_filled_up_to(end, FIELDS);
    }
}

Test(table, are_as_wide_as_the_values_need)
{
    static const unsigned bytes[FIELDS] = {0, 1, 1, 2, 2, 3, 4, 8, 6};
    struct packed_table table;
    unsigned size = 0;
    make(&table, 0);
    for (unsigned field = 0; field < FIELDS; field++)
        size += bytes[field];
    cr_assert_eq(table.row_size, size);
    packed_table_free(&table);
}

Test(table, take_no_more_for_values_that_are_large_but_near_each_other)
{
    struct value_range range = {UINT64_MAX - 200, UINT64_MAX};
    struct packed_table table;
    cr_assert_eq(packed_table_init(&table, 2, &range, 1), TTD_OK);
    cr_assert_eq(table.row_size, 1);
    packed_table_set(&table, 0, 0, UINT64_MAX);
    packed_table_set(&table, 1, 0, UINT64_MAX - 200);
    cr_assert_eq(packed_table_get(&table, 0, 0), UINT64_MAX);
    cr_assert_eq(packed_table_get(&table, 1, 0), UINT64_MAX - 200);
    packed_table_free(&table);
}

Test(table, of_none_there_are_none)
{
    struct value_range range = value_range_none();
    struct packed_table table;
    cr_assert_eq(packed_table_init(&table, 0, &range, 1), TTD_OK);
    cr_assert_eq(table.row_size, 0);
    packed_table_free(&table);
    packed_table_free(&table);
}

Test(table, too_many_are_refused)
{
    struct value_range range = {0, UINT64_MAX};
    struct packed_table table;
    cr_assert_eq(packed_table_init(&table, SIZE_MAX / 8, &range, 1), TTD_ERROR_NO_MEMORY);
}
