/* SPDX-License-Identifier: MIT */
/* Records of derived files, sums: round trips, and the violations that are refused. */
#include "codec/heap_state/heap_states.h"
#include "support/fixtures/buffer.h"
#include "support/fixtures/position.h"

TestSuite(sums, .init = buffer_begin, .fini = buffer_finish);

static struct ttd_sum sum_by_stack(void)
{
    return (struct ttd_sum){.table = TTD_SUMS_BY_STACK,
                            .key = UINT32_MAX,
                            .api = 5,
                            .blocks = 6,
                            .bytes = UINT64_MAX,
                            .first = {.sequence = 1, .steps = 2},
                            .last = {.sequence = 3, .steps = 4}};
}

static struct ttd_sum sum_by_size(void)
{
    return (struct ttd_sum){
        .table = TTD_SUMS_BY_SIZE, .key = 64, .api = 5, .blocks = 6, .bytes = 7};
}

static const char *decode_sum_of_size(struct ttd_sum *decoded, size_t size)
{
    struct ttd_cursor cursor = ttd_cursor_of(buffer.data, size);
    ttd_decode_sum(&cursor, decoded);
    ttd_cursor_finish(&cursor);
    return cursor.error;
}

static void expect_sum_round_trip(struct ttd_sum sum)
{
    struct ttd_sum decoded;
    ttd_buffer_clear(&buffer);
    ttd_encode_sum(&buffer, &sum);
    const char *error = decode_sum_of_size(&decoded, buffer.size);
    cr_assert_null(error, "%s", error);
    cr_assert_eq(decoded.table, sum.table);
    cr_assert_eq(decoded.key, sum.key);
    cr_assert_eq(decoded.api, sum.api);
    cr_assert_eq(decoded.blocks, sum.blocks);
    cr_assert_eq(decoded.bytes, sum.bytes);
    expect_position(decoded.first, sum.first);
    expect_position(decoded.last, sum.last);
}

Test(sums, sum_by_stack_comes_back_as_it_was)
{
    expect_sum_round_trip(sum_by_stack());
}

Test(sums, sums_of_the_other_tables_come_back_as_they_were)
{
    struct ttd_sum sum = sum_by_size();
    expect_sum_round_trip(sum);
    sum.table = TTD_SUMS_BY_HEAP;
    expect_sum_round_trip(sum);
    sum.table = TTD_SUMS_BY_THREAD;
    expect_sum_round_trip(sum);
}

Test(sums, only_a_sum_by_stack_has_positions)
{
    struct ttd_sum sum = sum_by_stack(), decoded;
    sum.table = TTD_SUMS_BY_HEAP;
    ttd_encode_sum(&buffer, &sum);

    cr_assert_null(decode_sum_of_size(&decoded, buffer.size));

    expect_position(decoded.first, (struct ttd_position){.sequence = 0, .steps = 0});
    expect_position(decoded.last, (struct ttd_position){.sequence = 0, .steps = 0});
}

Test(sums, sum_is_refused_where_it_is_truncated)
{
    struct ttd_sum sum = sum_by_stack(), decoded;
    ttd_encode_sum(&buffer, &sum);
    for (size_t size = 0; size < buffer.size; size++)
        cr_assert_not_null(decode_sum_of_size(&decoded, size), "size %zu", size);
}

static void expect_sum_refused(struct ttd_sum sum, const char *expected)
{
    struct ttd_sum decoded;
    ttd_encode_sum(&buffer, &sum);
    const char *error = decode_sum_of_size(&decoded, buffer.size);
    cr_assert_not_null(error);
    cr_assert_str_eq(error, expected);
}

Test(sums, sum_must_have_a_known_table)
{
    struct ttd_sum sum = sum_by_size();
    sum.table = (enum ttd_sum_table)(TTD_SUMS_BY_SIZE + 1);
    expect_sum_refused(sum, "value out of range");
}

Test(sums, sum_by_size_must_not_have_more_digits_than_a_size)
{
    struct ttd_sum sum = sum_by_size();
    sum.key = 65;
    expect_sum_refused(sum, "size of a sum");
}

Test(sums, sum_must_have_blocks)
{
    struct ttd_sum sum = sum_by_size();
    sum.blocks = 0;
    expect_sum_refused(sum, "sum of no blocks");
}

Test(sums, sum_must_have_a_first_position)
{
    struct ttd_sum sum = sum_by_stack();
    sum.first = ttd_position_invalid();
    expect_sum_refused(sum, "invalid position");
}

Test(sums, sum_must_have_a_last_position)
{
    struct ttd_sum sum = sum_by_stack();
    sum.last = ttd_position_invalid();
    expect_sum_refused(sum, "invalid position");
}

Test(sums, sum_must_not_end_before_it_begins)
{
    struct ttd_sum sum = sum_by_stack();
    sum.first = (struct ttd_position){.sequence = 3, .steps = 5};
    expect_sum_refused(sum, "positions of a sum");
}
