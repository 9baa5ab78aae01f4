/* SPDX-License-Identifier: MIT */
/* Bounds-safe reading of bytes. */
#include <criterion/criterion.h>

#include "base/cursor.h"

static const uint8_t bytes[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09};

static void expect_failed(const struct ttd_cursor *cursor, const char *error)
{
    cr_assert_not_null(cursor->error);
    cr_assert_str_eq(cursor->error, error);
    cr_assert_eq(ttd_cursor_left(cursor), 0);
}

Test(cursor, reads_integers_little_endian)
{
    struct ttd_cursor cursor = ttd_cursor_of(bytes, sizeof bytes);

    cr_assert_eq(ttd_cursor_get8(&cursor), 0x01);
    cr_assert_eq(ttd_cursor_get32(&cursor), 0x05040302);
    cr_assert_eq(ttd_cursor_left(&cursor), 4);

    cursor = ttd_cursor_of(bytes, sizeof bytes);
    cr_assert_eq(ttd_cursor_get64(&cursor), UINT64_C(0x0807060504030201));
    cr_assert_null(cursor.error);
}

Test(cursor, gives_all_bytes_that_are_left)
{
    struct ttd_cursor cursor = ttd_cursor_of(bytes, sizeof bytes);
    cr_assert_eq(ttd_cursor_bytes(&cursor, sizeof bytes), bytes);
    cr_assert_eq(ttd_cursor_left(&cursor), 0);
    cr_assert_null(cursor.error);
}

Test(cursor, refuses_more_bytes_than_are_left)
{
    struct ttd_cursor cursor = ttd_cursor_of(bytes, sizeof bytes);
    cr_assert_null(ttd_cursor_bytes(&cursor, sizeof bytes + 1));
    expect_failed(&cursor, "payload too short");
}

Test(cursor, refuses_a_size_that_would_wrap)
{
    struct ttd_cursor cursor = ttd_cursor_of(bytes, sizeof bytes);
    cr_assert_null(ttd_cursor_bytes(&cursor, SIZE_MAX));
    expect_failed(&cursor, "payload too short");
}

Test(cursor, refuses_integers_that_are_cut_short)
{
    for (size_t size = 0; size < 8; size++) {
        struct ttd_cursor cursor = ttd_cursor_of(bytes, size);
        cr_assert_eq(ttd_cursor_get64(&cursor), 0);
        expect_failed(&cursor, "payload too short");
    }
    for (size_t size = 0; size < 4; size++) {
        struct ttd_cursor cursor = ttd_cursor_of(bytes, size);
        cr_assert_eq(ttd_cursor_get32(&cursor), 0);
        expect_failed(&cursor, "payload too short");
    }
    struct ttd_cursor cursor = ttd_cursor_of(bytes, 0);
    cr_assert_eq(ttd_cursor_get8(&cursor), 0);
    expect_failed(&cursor, "payload too short");
}

Test(cursor, keeps_its_first_error)
{
    struct ttd_cursor cursor = ttd_cursor_of(bytes, sizeof bytes);
    ttd_cursor_fail(&cursor, "first");
    ttd_cursor_fail(&cursor, "second");
    expect_failed(&cursor, "first");
}

Test(cursor, gives_nothing_after_an_error)
{
    struct ttd_cursor cursor = ttd_cursor_of(bytes, sizeof bytes);
    ttd_cursor_fail(&cursor, "first");

    cr_assert_eq(ttd_cursor_get8(&cursor), 0);
    cr_assert_eq(ttd_cursor_varint(&cursor), 0);
    cr_assert_null(ttd_cursor_bytes(&cursor, 1));

    expect_failed(&cursor, "first");
}

Test(cursor, takes_reserved_bytes_that_are_zero)
{
    const uint8_t zeros[4] = {0};
    struct ttd_cursor cursor = ttd_cursor_of(zeros, sizeof zeros);
    ttd_cursor_reserved32(&cursor);
    cr_assert_null(cursor.error);
    cr_assert_eq(ttd_cursor_left(&cursor), 0);
}

Test(cursor, refuses_reserved_bytes_that_are_not_zero)
{
    for (size_t i = 0; i < 4; i++) {
        uint8_t reserved[4] = {0};
        reserved[i] = 0x10;
        struct ttd_cursor cursor = ttd_cursor_of(reserved, sizeof reserved);
        ttd_cursor_reserved32(&cursor);
        expect_failed(&cursor, "reserved field is not zero");
    }
}

Test(cursor, splits_off_a_cursor_of_its_own)
{
    struct ttd_cursor cursor = ttd_cursor_of(bytes, sizeof bytes);

    struct ttd_cursor part = ttd_cursor_split(&cursor, 3);

    cr_assert_eq(ttd_cursor_left(&part), 3);
    cr_assert_eq(ttd_cursor_get8(&part), 0x01);
    cr_assert_eq(ttd_cursor_get8(&cursor), 0x04);
}

Test(cursor, splits_off_nothing_beyond_its_end)
{
    struct ttd_cursor cursor = ttd_cursor_of(bytes, 3);

    struct ttd_cursor part = ttd_cursor_split(&cursor, 4);

    cr_assert_eq(ttd_cursor_left(&part), 0);
    expect_failed(&cursor, "payload too short");
}

Test(cursor, finishes_where_everything_was_read)
{
    struct ttd_cursor cursor = ttd_cursor_of(bytes, 1);
    ttd_cursor_get8(&cursor);
    ttd_cursor_finish(&cursor);
    cr_assert_null(cursor.error);
}

Test(cursor, refuses_to_finish_before_the_end)
{
    struct ttd_cursor cursor = ttd_cursor_of(bytes, 1);
    ttd_cursor_finish(&cursor);
    expect_failed(&cursor, "bytes left over in the payload");
}
