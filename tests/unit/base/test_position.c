/* SPDX-License-Identifier: MIT */
/* Positions as text. */
#include <string.h>

#include <criterion/criterion.h>

#include <ttdtrace/position.h>

static void expect_text(struct ttd_position position, const char *expected)
{
    char text[TTD_POSITION_TEXT];
    size_t size = ttd_position_format(position, text);
    cr_assert_str_eq(text, expected);
    cr_assert_eq(size, strlen(expected));
}

static void expect_refused(const char *text)
{
    struct ttd_position position = {.sequence = 77, .steps = 88};
    cr_assert_not(ttd_position_parse(text, &position), "%s", text);
    cr_assert_eq(position.sequence, 77, "untouched");
    cr_assert_eq(position.steps, 88, "untouched");
}

Test(position, is_written_in_hexadecimal_without_leading_zeros)
{
    expect_text((struct ttd_position){0, 0}, "0:0");
    expect_text((struct ttd_position){0x2B, 0x10}, "2B:10");
    expect_text((struct ttd_position){TTD_SEQUENCE_MAX, UINT64_MAX},
                "FFFFFFFFFFFFFFFE:FFFFFFFFFFFFFFFF");
}

Test(position, that_is_invalid_is_written_as_a_word)
{
    expect_text(ttd_position_invalid(), "Invalid");
}

Test(position, comes_back_from_its_text)
{
    static const struct ttd_position positions[] = {
        {0, 0}, {1, 0xABC}, {TTD_SEQUENCE_MAX, UINT64_MAX}};
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        char text[TTD_POSITION_TEXT];
        struct ttd_position position;
        ttd_position_format(positions[i], text);
        cr_assert(ttd_position_parse(text, &position));
        cr_assert_eq(position.sequence, positions[i].sequence);
        cr_assert_eq(position.steps, positions[i].steps);
    }
}

Test(position, may_be_given_in_small_letters)
{
    struct ttd_position position;
    cr_assert(ttd_position_parse("2b:0aF", &position));
    cr_assert_eq(position.sequence, 0x2B);
    cr_assert_eq(position.steps, 0xAF);
}

Test(position, is_refused_where_a_part_is_missing)
{
    expect_refused("");
    expect_refused("1");
    expect_refused("1:");
    expect_refused(":1");
}

Test(position, is_refused_with_anything_around_it)
{
    expect_refused(" 1:1");
    expect_refused("1:1 ");
    expect_refused("0x1:1");
    expect_refused("1:1:1");
    expect_refused("-1:1");
}

Test(position, is_refused_beyond_64_bits)
{
    expect_refused("10000000000000000:0");
    expect_refused("0:10000000000000000");
}

Test(position, is_refused_where_it_is_invalid)
{
    expect_refused("FFFFFFFFFFFFFFFF:0");
    expect_refused("FFFFFFFFFFFFFFFF:FFFFFFFFFFFFFFFF");
}
