/* SPDX-License-Identifier: MIT */
/* Live blocks, memory maps and pages: round trips, and what is refused. */
#include <string.h>

#include <criterion/criterion.h>

#include "base/memory.h"
#include "codec/columns.h"

static struct ttd_allocator allocator;
static struct ttd_buffer buffer;
static struct ttd_buffer columns[TTD_BLOCK_COLUMN_COUNT];

static void begin(void)
{
    allocator = ttd_allocator_default();
    ttd_buffer_init(&buffer, &allocator);
    for (size_t i = 0; i < TTD_BLOCK_COLUMN_COUNT; i++)
        ttd_buffer_init(&columns[i], &allocator);
}

static void finish(void)
{
    ttd_buffer_free(&buffer);
    for (size_t i = 0; i < TTD_BLOCK_COLUMN_COUNT; i++)
        ttd_buffer_free(&columns[i]);
}

TestSuite(columns, .init = begin, .fini = finish);

static void expect_error(const struct ttd_cursor *cursor, const char *error)
{
    cr_assert_not_null(cursor->error);
    cr_assert_str_eq(cursor->error, error);
}

/* ---- Live blocks ---- */

static const struct ttd_block blocks[] = {{.address = 0x1000,
                                           .size = 24,
                                           .event = 900,
                                           .allocated = {5, 6},
                                           .thread = 1,
                                           .heap = 2,
                                           .stack = 300,
                                           .api = TTD_API_MALLOC},
                                          {.address = UINT64_MAX,
                                           .size = UINT64_MAX,
                                           .event = 0,
                                           .allocated = {4, UINT64_MAX},
                                           .thread = UINT32_MAX,
                                           .heap = UINT32_MAX,
                                           .stack = 1,
                                           .api = 255}};
#define BLOCKS (sizeof blocks / sizeof *blocks)

static struct ttd_live_blocks list_of_blocks(void)
{
    return (struct ttd_live_blocks){.list = TTD_BLOCKS_SNAPSHOT,
                                    .list_id = 4,
                                    .last = true,
                                    .position = {7, 8},
                                    .blocks = blocks,
                                    .count = BLOCKS};
}

/* Decodes what is in the buffer as a list of so many blocks. */
static struct ttd_cursor decode_blocks(struct ttd_live_blocks *list, struct ttd_block *decoded,
                                       size_t count, size_t size)
{
    struct ttd_cursor cursor = ttd_cursor_of(buffer.data, size);
    *list = (struct ttd_live_blocks){.count = count};
    ttd_decode_live_blocks(&cursor, list, decoded);
    return cursor;
}

static void expect_blocks_refused(const char *error)
{
    struct ttd_live_blocks list;
    struct ttd_block decoded[BLOCKS];
    struct ttd_cursor cursor = decode_blocks(&list, decoded, BLOCKS, buffer.size);
    expect_error(&cursor, error);
}

Test(columns, live_blocks_come_back_as_they_were)
{
    struct ttd_live_blocks list = list_of_blocks();
    struct ttd_block decoded[BLOCKS];
    ttd_encode_live_blocks(&buffer, &list, columns);

    struct ttd_cursor cursor = decode_blocks(&list, decoded, BLOCKS, buffer.size);

    cr_assert_null(cursor.error, "%s", cursor.error);
    cr_assert_eq(list.list, TTD_BLOCKS_SNAPSHOT);
    cr_assert_eq(list.list_id, 4);
    cr_assert(list.last);
    cr_assert_eq(list.position.sequence, 7);
    cr_assert_eq(list.position.steps, 8);
    for (size_t i = 0; i < BLOCKS; i++) {
        cr_assert_eq(decoded[i].address, blocks[i].address);
        cr_assert_eq(decoded[i].size, blocks[i].size);
        cr_assert_eq(decoded[i].event, blocks[i].event);
        cr_assert_eq(ttd_position_compare(decoded[i].allocated, blocks[i].allocated), 0);
        cr_assert_eq(decoded[i].thread, blocks[i].thread);
        cr_assert_eq(decoded[i].heap, blocks[i].heap);
        cr_assert_eq(decoded[i].stack, blocks[i].stack);
        cr_assert_eq(decoded[i].api, blocks[i].api);
    }
}

Test(columns, live_blocks_may_be_none)
{
    struct ttd_live_blocks list = list_of_blocks();
    list.count = 0;
    ttd_encode_live_blocks(&buffer, &list, columns);
    struct ttd_cursor cursor = decode_blocks(&list, NULL, 0, buffer.size);
    cr_assert_null(cursor.error);
}

Test(columns, live_blocks_are_refused_where_they_are_truncated)
{
    struct ttd_live_blocks list = list_of_blocks();
    struct ttd_block decoded[BLOCKS];
    ttd_encode_live_blocks(&buffer, &list, columns);
    for (size_t size = 0; size < buffer.size; size++) {
        struct ttd_cursor cursor = decode_blocks(&list, decoded, BLOCKS, size);
        cr_assert_not_null(cursor.error);
    }
}

Test(columns, live_blocks_must_be_as_many_as_the_header_says)
{
    struct ttd_live_blocks list = list_of_blocks();
    struct ttd_block decoded[BLOCKS + 1];
    ttd_encode_live_blocks(&buffer, &list, columns);
    struct ttd_cursor cursor = decode_blocks(&list, decoded, BLOCKS - 1, buffer.size);
    expect_error(&cursor, "bytes left over in the payload");
    cursor = decode_blocks(&list, decoded, BLOCKS + 1, buffer.size);
    cr_assert_not_null(cursor.error);
}

Test(columns, live_blocks_must_be_in_order_of_address)
{
    struct ttd_block same[BLOCKS] = {blocks[0], blocks[0]};
    struct ttd_live_blocks list = list_of_blocks();
    list.blocks = same;
    ttd_encode_live_blocks(&buffer, &list, columns);
    expect_blocks_refused("blocks not in order of address");
}

Test(columns, live_blocks_must_have_been_allocated)
{
    struct ttd_block invalid[BLOCKS] = {blocks[0], blocks[1]};
    struct ttd_live_blocks list = list_of_blocks();
    list.blocks = invalid;
    invalid[1].allocated = ttd_position_invalid();
    ttd_encode_live_blocks(&buffer, &list, columns);
    expect_blocks_refused("invalid position");
}

/* Encodes the list, and changes the 32-bit number at that offset. */
static void encode_with(size_t offset, uint32_t value)
{
    struct ttd_live_blocks list = list_of_blocks();
    ttd_encode_live_blocks(&buffer, &list, columns);
    ttd_put32(buffer.data + offset, value);
}

Test(columns, live_blocks_must_be_a_known_list)
{
    encode_with(TTD_BLOCKS_LIST, 0);
    expect_blocks_refused("list of blocks");
    ttd_buffer_clear(&buffer);
    encode_with(TTD_BLOCKS_LIST, TTD_BLOCKS_RUNTIME + 1);
    expect_blocks_refused("list of blocks");
}

Test(columns, live_blocks_must_have_the_number_of_their_list)
{
    encode_with(TTD_BLOCKS_LIST_ID, 0);
    expect_blocks_refused("number of a list of blocks");
}

Test(columns, live_blocks_must_not_have_unknown_flags)
{
    encode_with(TTD_BLOCKS_FLAGS, TTD_BLOCKS_LAST | 2);
    expect_blocks_refused("unknown flags of a list of blocks");
}

Test(columns, live_blocks_must_have_reserved_bytes_of_zero)
{
    encode_with(TTD_BLOCKS_RESERVED, 1);
    expect_blocks_refused("reserved field is not zero");
}

/* ---- Lists in several chunks ---- */

static const char *take(struct ttd_list_state *state, bool is_last, uint64_t address)
{
    struct ttd_block block = {.address = address};
    struct ttd_live_blocks list = list_of_blocks();
    list.last = is_last;
    list.blocks = &block;
    list.count = 1;
    return ttd_list_take(state, &list);
}

Test(columns, list_goes_on_with_higher_addresses)
{
    struct ttd_list_state state = {.is_open = false};
    cr_assert_null(take(&state, false, 10));
    cr_assert_null(take(&state, false, 11));
    cr_assert_str_eq(take(&state, true, 11), "order of blocks");
}

Test(columns, list_that_has_ended_may_begin_again)
{
    struct ttd_list_state state = {.is_open = false};
    cr_assert_null(take(&state, true, 10));
    cr_assert_null(take(&state, true, 5));
}

Test(columns, list_must_stay_at_its_position)
{
    struct ttd_list_state state = {.is_open = false};
    struct ttd_live_blocks list = list_of_blocks();
    list.count = 0;
    list.last = false;
    cr_assert_null(ttd_list_take(&state, &list));
    list.position.steps++;
    cr_assert_str_eq(ttd_list_take(&state, &list), "continuation of a list of blocks");
}

/* ---- Memory maps ---- */

static const struct ttd_memory_run runs[] = {
    {.address = 0x1000, .page_count = 2, .protection = 3, .page = TTD_PAGE_FIRST},
    {.address = 0x8000, .page_count = 1, .protection = TTD_MEMORY_MASK, .page = 0}};
#define RUNS (sizeof runs / sizeof *runs)

static struct ttd_memory_map map_of_runs(void)
{
    return (struct ttd_memory_map){.snapshot = 5,
                                   .last = true,
                                   .position = {7, 8},
                                   .page_size = 4096,
                                   .runs = runs,
                                   .count = RUNS};
}

static struct ttd_cursor decode_map(struct ttd_memory_map *map, struct ttd_memory_run *decoded,
                                    size_t size)
{
    struct ttd_cursor cursor = ttd_cursor_of(buffer.data, size);
    *map = (struct ttd_memory_map){.count = RUNS};
    ttd_decode_memory_map(&cursor, map, decoded);
    return cursor;
}

static void expect_map_refused(const char *error)
{
    struct ttd_memory_map map;
    struct ttd_memory_run decoded[RUNS];
    struct ttd_cursor cursor = decode_map(&map, decoded, buffer.size);
    expect_error(&cursor, error);
}

Test(columns, memory_map_comes_back_as_it_was)
{
    struct ttd_memory_map map = map_of_runs();
    struct ttd_memory_run decoded[RUNS];
    ttd_encode_memory_map(&buffer, &map);

    struct ttd_cursor cursor = decode_map(&map, decoded, buffer.size);

    cr_assert_null(cursor.error, "%s", cursor.error);
    cr_assert_eq(map.snapshot, 5);
    cr_assert(map.last);
    cr_assert_eq(map.position.sequence, 7);
    cr_assert_eq(map.position.steps, 8);
    cr_assert_eq(map.page_size, 4096);
    for (size_t i = 0; i < RUNS; i++) {
        cr_assert_eq(decoded[i].address, runs[i].address);
        cr_assert_eq(decoded[i].page_count, runs[i].page_count);
        cr_assert_eq(decoded[i].protection, runs[i].protection);
        cr_assert_eq(decoded[i].page, runs[i].page);
    }
}

Test(columns, memory_map_is_refused_where_it_is_truncated)
{
    struct ttd_memory_map map = map_of_runs();
    struct ttd_memory_run decoded[RUNS];
    ttd_encode_memory_map(&buffer, &map);
    for (size_t size = 0; size < buffer.size; size++) {
        struct ttd_cursor cursor = decode_map(&map, decoded, size);
        cr_assert_not_null(cursor.error);
    }
}

static void expect_run_refused(struct ttd_memory_run run, const char *error)
{
    struct ttd_memory_run changed[RUNS] = {runs[0], run};
    struct ttd_memory_map map = map_of_runs();
    map.runs = changed;
    ttd_encode_memory_map(&buffer, &map);
    expect_map_refused(error);
}

Test(columns, memory_map_must_not_have_a_run_without_pages)
{
    expect_run_refused((struct ttd_memory_run){.address = 0x8000}, "run without pages");
}

Test(columns, memory_map_must_not_reach_beyond_64_bits)
{
    expect_run_refused((struct ttd_memory_run){.address = UINT64_C(0) - 4096, .page_count = 2},
                       "value out of range");
}

Test(columns, memory_map_must_not_have_unknown_protection)
{
    expect_run_refused((struct ttd_memory_run){.address = 0x8000,
                                               .page_count = 1,
                                               .protection = TTD_MEMORY_MASK + 1},
                       "value out of range");
}

Test(columns, memory_map_must_not_number_pages_beyond_64_bits)
{
    expect_run_refused(
        (struct ttd_memory_run){.address = 0x8000, .page_count = 2, .page = UINT64_MAX - 1},
        "page of a run");
}

Test(columns, memory_map_must_have_a_page_size_of_the_format)
{
    struct ttd_memory_map map = map_of_runs();
    ttd_encode_memory_map(&buffer, &map);
    ttd_put32(buffer.data + TTD_MAP_PAGE_SIZE, 4097);
    expect_map_refused("page size");
    cr_assert(ttd_page_size_is_valid(TTD_PAGE_SIZE_MIN));
    cr_assert(ttd_page_size_is_valid(TTD_PAGE_SIZE_MAX));
    cr_assert_not(ttd_page_size_is_valid(TTD_PAGE_SIZE_MIN / 2));
    cr_assert_not(ttd_page_size_is_valid(2 * (uint64_t)TTD_PAGE_SIZE_MAX));
}

Test(columns, memory_map_must_belong_to_a_snapshot)
{
    struct ttd_memory_map map = map_of_runs();
    map.snapshot = 0;
    ttd_encode_memory_map(&buffer, &map);
    expect_map_refused("number of a snapshot");
}

/* ---- Pages ---- */

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

Test(columns, pages_come_back_as_they_were)
{
    struct ttd_pages pages;
    encode_two_pages();
    struct ttd_cursor cursor = decode_pages(&pages, TTD_PAGE_FIRST, 2);
    cr_assert_null(cursor.error);
    cr_assert_eq(pages.page_size, TTD_PAGE_SIZE_MIN);
    cr_assert_eq(pages.data[TTD_PAGE_SIZE_MIN], 7);
}

Test(columns, pages_must_be_as_many_as_the_header_says)
{
    struct ttd_pages pages;
    encode_two_pages();
    struct ttd_cursor cursor = decode_pages(&pages, TTD_PAGE_FIRST, 1);
    cr_assert_not_null(cursor.error);
    cursor = decode_pages(&pages, TTD_PAGE_FIRST, 3);
    cr_assert_not_null(cursor.error);
}

Test(columns, pages_must_not_have_a_number_with_a_meaning)
{
    struct ttd_pages pages;
    encode_two_pages();
    struct ttd_cursor cursor = decode_pages(&pages, TTD_PAGE_FIRST - 1, 2);
    expect_error(&cursor, "id of the first page");
}
