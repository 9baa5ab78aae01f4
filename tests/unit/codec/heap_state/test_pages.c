/* SPDX-License-Identifier: MIT */
/* Pages: round trips, and what is refused. */
#include "codec/heap_state/heap_states.h"
#include "layout.h"
#include "support/fixtures/buffer.h"

TestSuite(pages, .init = buffer_begin, .fini = buffer_finish);

static struct ttd_cursor decode_pages(struct ttd_pages *pages, uint64_t first_page, uint32_t count)
{
    struct ttd_cursor cursor = ttd_cursor_of(buffer.data, buffer.size);
    *pages = (struct ttd_pages){.first_page = first_page, .count = count};
    ttd_decode_pages(&cursor, pages);
    return cursor;
}

static void encode_two_pages(void)
{
    static uint8_t data[2 * TTD_PAGE_SIZE_MIN];
    const struct ttd_pages pages = {.page_size = TTD_PAGE_SIZE_MIN, .count = 2, .data = data};
    data[TTD_PAGE_SIZE_MIN] = 7;
    ttd_encode_pages(&buffer, &pages);
}

Test(pages, pages_come_back_as_they_were)
{
    struct ttd_pages pages;
    encode_two_pages();
    struct ttd_cursor cursor = decode_pages(&pages, TTD_PAGE_FIRST, 2);
    cr_assert_null(cursor.error);
    cr_assert_eq(pages.page_size, TTD_PAGE_SIZE_MIN);
    cr_assert_eq(pages.data[TTD_PAGE_SIZE_MIN], 7);
}

Test(pages, pages_must_be_as_many_as_the_header_says)
{
    struct ttd_pages pages;
    encode_two_pages();
    struct ttd_cursor cursor = decode_pages(&pages, TTD_PAGE_FIRST, 1);
    cr_assert_not_null(cursor.error);
    cursor = decode_pages(&pages, TTD_PAGE_FIRST, 3);
    cr_assert_not_null(cursor.error);
}

Test(pages, pages_must_not_have_a_number_with_a_meaning)
{
    struct ttd_pages pages;
    encode_two_pages();
    struct ttd_cursor cursor = decode_pages(&pages, TTD_PAGE_FIRST - 1, 2);
    expect_error(&cursor, "id of the first page");
}

Test(pages, sizes_are_powers_of_two_within_limits)
{
    cr_assert(ttd_page_size_is_valid(TTD_PAGE_SIZE_MIN));
    cr_assert(ttd_page_size_is_valid(TTD_PAGE_SIZE_MAX));
    cr_assert_not(ttd_page_size_is_valid(TTD_PAGE_SIZE_MIN / 2));
    cr_assert_not(ttd_page_size_is_valid(2 * (uint64_t)TTD_PAGE_SIZE_MAX));
    cr_assert_not(ttd_page_size_is_valid(TTD_PAGE_SIZE_MIN + 1));
}
