/* SPDX-License-Identifier: MIT */
/* Links of index chunks: round trips, and what is refused. */
#include "codec/chunk/header.h"
#include "support/fixtures/buffer.h"

#define ENTRIES 2

TestSuite(index, .init = buffer_begin, .fini = buffer_finish);

static struct ttd_index_links two_links(void)
{
    return (struct ttd_index_links){
        .count = 2,
        .links = {{.offset = 4096, .first_event = 100, .position = {9, 8}},
                  {.offset = 1024, .first_event = 50, .position = {7, 6}}}};
}

/* Encodes the links, and as many entries of zeros. */
static void encode(struct ttd_index_links links)
{
    static const uint8_t entries[ENTRIES * TTD_HEADER_SIZE];
    ttd_buffer_clear(&buffer);
    ttd_encode_index_links(&buffer, &links);
    ttd_buffer_put(&buffer, entries, sizeof entries);
}

static struct ttd_cursor decode(struct ttd_index_links *links, uint32_t entries)
{
    struct ttd_cursor cursor = ttd_cursor_of(buffer.data, buffer.size);
    ttd_decode_index_links(&cursor, links, entries);
    return cursor;
}

static void expect_refused(struct ttd_index_links links, const char *error)
{
    struct ttd_index_links decoded;
    encode(links);
    struct ttd_cursor cursor = decode(&decoded, ENTRIES);
    cr_assert_not_null(cursor.error);
    cr_assert_str_eq(cursor.error, error);
}

Test(index, comes_back_as_it_was)
{
    struct ttd_index_links decoded;
    encode(two_links());

    struct ttd_cursor cursor = decode(&decoded, ENTRIES);

    cr_assert_null(cursor.error, "%s", cursor.error);
    cr_assert_eq(ttd_cursor_left(&cursor), ENTRIES * TTD_HEADER_SIZE, "the entries are left");
    cr_assert_eq(decoded.count, 2);
    cr_assert_eq(decoded.links[0].offset, 4096);
    cr_assert_eq(decoded.links[0].first_event, 100);
    cr_assert_eq(decoded.links[0].position.sequence, 9);
    cr_assert_eq(decoded.links[0].position.steps, 8);
    cr_assert_eq(decoded.links[1].offset, 1024);
    cr_assert_eq(decoded.links[1].first_event, 50);
    cr_assert_eq(decoded.links[1].position.sequence, 7);
}

Test(index, must_have_a_link_to_itself)
{
    expect_refused((struct ttd_index_links){.count = 0}, "size of an index");
}

Test(index, must_keep_the_limit_of_links)
{
    struct ttd_index_links decoded;
    encode(two_links());
    ttd_put32(buffer.data + TTD_INDEX_LINK_COUNT, TTD_INDEX_LINKS_MAX + 1);
    cr_assert_str_eq(decode(&decoded, ENTRIES).error, "size of an index");
    cr_assert_eq(decoded.count, 0);
}

Test(index, must_have_as_many_entries_as_the_header_says)
{
    struct ttd_index_links decoded;
    encode(two_links());
    cr_assert_str_eq(decode(&decoded, ENTRIES - 1).error, "size of an index");
    cr_assert_str_eq(decode(&decoded, ENTRIES + 1).error, "size of an index");
    cr_assert_str_eq(decode(&decoded, 0).error, "size of an index");
    cr_assert_str_eq(decode(&decoded, TTD_INDEX_ENTRIES_MAX + 1).error, "size of an index");
}

Test(index, must_have_reserved_bytes_of_zero)
{
    struct ttd_index_links decoded;
    encode(two_links());
    buffer.data[TTD_INDEX_RESERVED] = 1;
    cr_assert_str_eq(decode(&decoded, ENTRIES).error, "reserved field is not zero");
}

Test(index, must_link_to_ever_earlier_chunks)
{
    struct ttd_index_links links = two_links();
    links.links[1].offset = links.links[0].offset;
    expect_refused(links, "links of an index");
    links = two_links();
    links.links[1].first_event = links.links[0].first_event + 1;
    expect_refused(links, "links of an index");
    links = two_links();
    links.links[1].position.sequence = links.links[0].position.sequence + 1;
    expect_refused(links, "links of an index");
}

Test(index, must_have_valid_positions)
{
    struct ttd_index_links links = two_links();
    links.links[0].position = ttd_position_invalid();
    expect_refused(links, "links of an index");
}

Test(index, is_refused_where_it_is_truncated)
{
    struct ttd_index_links decoded;
    encode(two_links());
    for (size_t size = 0; size < buffer.size; size++) {
        struct ttd_cursor cursor = ttd_cursor_of(buffer.data, size);
        ttd_decode_index_links(&cursor, &decoded, ENTRIES);
        cr_assert_not_null(cursor.error);
    }
}
