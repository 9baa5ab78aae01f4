/* SPDX-License-Identifier: MIT */
/* Varints: each value has one encoding, and all that write or read them agree. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "layout.h"
#include "support/entropy.h"

/* Bytes of an encoding, or of what should be one. */
struct encoding {
    uint8_t bytes[TTD_VARINT_MAX + 1];
    size_t size;
};

static struct encoding encode(uint64_t value)
{
    struct encoding encoding;
    encoding.size = (size_t)(ttd_put_varint(encoding.bytes, value) - encoding.bytes);
    return encoding;
}

static struct ttd_cursor cursor_of(const struct encoding *encoding)
{
    return ttd_cursor_of(encoding->bytes, encoding->size);
}

static void expect_refused(const uint8_t *bytes, size_t size, const char *error)
{
    struct ttd_cursor cursor = ttd_cursor_of(bytes, size);
    cr_assert_eq(ttd_cursor_varint(&cursor), 0);
    cr_assert_not_null(cursor.error);
    cr_assert_str_eq(cursor.error, error);
    cr_assert_eq(ttd_cursor_left(&cursor), 0);
}

/* 0, and the smallest and the largest number of each number of digits. */
#define EDGES 129

static uint64_t edge(size_t index)
{
    if (index == 0)
        return 0;
    uint64_t first = UINT64_C(1) << (index - 1) / 2;
    return index % 2 ? first : first | (first - 1);
}

Test(varint, is_the_shortest_encoding)
{
    for (size_t i = 0; i < EDGES; i++) {
        size_t groups = 1;
        for (uint64_t rest = edge(i) >> 7; rest; rest >>= 7)
            groups++;
        cr_assert_eq(encode(edge(i)).size, groups);
    }
    cr_assert_eq(encode(UINT64_MAX).size, TTD_VARINT_MAX);
}

/* Both ways to write one give the same bytes. */
static void expect_same_appended(uint64_t value)
{
    struct encoding encoding = encode(value);
    uint8_t bytes[TTD_VARINT_MAX];
    struct ttd_buffer buffer = {.data = bytes, .capacity = sizeof bytes};
    ttd_buffer_append_varint(&buffer, value);
    cr_assert_eq(buffer.size, encoding.size, "%lx", (unsigned long)value);
    cr_assert_eq(memcmp(bytes, encoding.bytes, encoding.size), 0, "%lx", (unsigned long)value);
}

Test(varint, is_appended_as_it_is_put)
{
    struct entropy random = entropy_of_seed(1);
    for (size_t i = 0; i < EDGES; i++) {
        expect_same_appended(edge(i));
        for (size_t j = 0; j < 100; j++)
            expect_same_appended(edge(i) & entropy_next(&random));
    }
}

Test(varint, has_the_low_groups_first)
{
    struct encoding encoding = encode(300);
    cr_assert_eq(encoding.size, 2);
    cr_assert_eq(encoding.bytes[0], 0xAC);
    cr_assert_eq(encoding.bytes[1], 0x02);
}

Test(varint, comes_back_as_it_was)
{
    for (size_t i = 0; i < EDGES; i++) {
        struct encoding encoding = encode(edge(i));
        struct ttd_cursor cursor = cursor_of(&encoding);
        cr_assert_eq(ttd_cursor_varint(&cursor), edge(i));
        cr_assert_null(cursor.error);
        cr_assert_eq(ttd_cursor_left(&cursor), 0);
    }
}

Test(varint, is_refused_where_it_is_cut_short)
{
    for (size_t i = 0; i < EDGES; i++) {
        struct encoding encoding = encode(edge(i));
        for (size_t size = 0; size < encoding.size; size++)
            expect_refused(encoding.bytes, size, "payload too short");
    }
}

Test(varint, is_refused_where_it_is_overlong)
{
    for (size_t i = 0; i < EDGES; i++) {
        struct encoding encoding = encode(edge(i));
        if (encoding.size == TTD_VARINT_MAX)
            continue;
        encoding.bytes[encoding.size - 1] |= 0x80;
        encoding.bytes[encoding.size] = 0;
        expect_refused(encoding.bytes, encoding.size + 1, "overlong varint");
    }
}

Test(varint, is_refused_beyond_64_bits)
{
    struct encoding encoding = encode(UINT64_MAX);
    encoding.bytes[TTD_VARINT_MAX - 1] = 2;
    expect_refused(encoding.bytes, TTD_VARINT_MAX, "varint exceeds 64 bits");
}

Test(varint, is_refused_with_an_eleventh_byte)
{
    struct encoding encoding = encode(UINT64_MAX);
    encoding.bytes[TTD_VARINT_MAX - 1] |= 0x80;
    encoding.bytes[TTD_VARINT_MAX] = 0;
    expect_refused(encoding.bytes, TTD_VARINT_MAX + 1, "varint exceeds 64 bits");
}

Test(varint, may_be_as_large_as_its_limit)
{
    struct encoding encoding = encode(1000);
    struct ttd_cursor cursor = cursor_of(&encoding);
    cr_assert_eq(ttd_cursor_varint_max(&cursor, 1000), 1000);
    cr_assert_null(cursor.error);
}

Test(varint, is_refused_beyond_its_limit)
{
    struct encoding encoding = encode(1001);
    struct ttd_cursor cursor = cursor_of(&encoding);
    cr_assert_eq(ttd_cursor_varint_max(&cursor, 1000), 0);
    cr_assert_str_eq(cursor.error, "value out of range");
}

Test(varint, of_32_bits_may_be_the_largest)
{
    struct encoding encoding = encode(UINT32_MAX);
    struct ttd_cursor cursor = cursor_of(&encoding);
    cr_assert_eq(ttd_cursor_varint32(&cursor), UINT32_MAX);
    cr_assert_null(cursor.error);
}

Test(varint, of_32_bits_is_refused_beyond_them)
{
    struct encoding encoding = encode((uint64_t)UINT32_MAX + 1);
    struct ttd_cursor cursor = cursor_of(&encoding);
    cr_assert_eq(ttd_cursor_varint32(&cursor), 0);
    cr_assert_str_eq(cursor.error, "value out of range");
}

Test(varint, is_small_for_small_differences_up_and_down)
{
    cr_assert_eq(ttd_zigzag(0), 0);
    cr_assert_eq(ttd_zigzag(UINT64_MAX), 1, "one less");
    cr_assert_eq(ttd_zigzag(1), 2);
    for (size_t i = 0; i < EDGES; i++)
        cr_assert_eq(ttd_unzigzag(ttd_zigzag(edge(i))), edge(i));
}

/* ---- The fast ways ---- */

/* The fast reader looks at 8 bytes at a time: what follows must not matter. */
static void expect_same_reading(const uint8_t *bytes, size_t size)
{
    struct ttd_cursor expected = ttd_cursor_of(bytes, size);
    struct ttd_cursor cursor = expected;
    uint64_t value = ttd_cursor_varint(&expected);
    cr_assert_eq(ttd_varint_fast(&cursor), value);
    cr_assert_eq(cursor.next, expected.next);
    cr_assert_eq(cursor.error, expected.error);
}

Test(varint, is_read_fast_as_it_is_read_slowly)
{
    struct entropy entropy = entropy_of_seed(1);
    for (unsigned round = 0; round < 20000; round++) {
        uint8_t bytes[24];
        size_t size = entropy_pick(&entropy, sizeof bytes + 1);
        unsigned high_bits = entropy_pick(&entropy, 9); /* how many bytes go on, of 8 */
        for (size_t i = 0; i < size; i++) {
            unsigned group = entropy_pick(&entropy, 3) ? entropy_pick(&entropy, 128) : 0;
            unsigned goes_on = entropy_pick(&entropy, 8) < high_bits;
            bytes[i] = (uint8_t)(group | goes_on << 7);
        }
        expect_same_reading(bytes, size);
    }
}

Test(varint, is_appended_to_a_buffer_as_it_is_put)
{
    uint8_t room[TTD_VARINT_MAX];
    for (size_t i = 0; i < EDGES; i++) {
        struct encoding expected = encode(edge(i));
        struct ttd_buffer buffer = {.data = room, .capacity = sizeof room};
        ttd_buffer_append_varint(&buffer, edge(i));
        cr_assert_eq(buffer.size, expected.size);
        cr_assert_eq(memcmp(buffer.data, expected.bytes, expected.size), 0);
    }
}
