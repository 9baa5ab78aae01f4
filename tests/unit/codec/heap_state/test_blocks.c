/* SPDX-License-Identifier: MIT */
/* Live blocks: round trips, and what is refused. */
#include <string.h>

#include <ttdtrace/event.h>

#include "codec/heap_state/heap_states.h"
#include "support/fixtures/buffer.h"

static struct ttd_buffer columns[TTD_BLOCK_COLUMN_COUNT];

static void begin(void)
{
    buffer_begin();
    for (size_t i = 0; i < TTD_BLOCK_COLUMN_COUNT; i++)
        ttd_buffer_init(&columns[i], &allocator);
}

static void finish(void)
{
    for (size_t i = 0; i < TTD_BLOCK_COLUMN_COUNT; i++)
        ttd_buffer_free(&columns[i]);
    buffer_finish();
}

TestSuite(blocks, .init = begin, .fini = finish);

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

Test(blocks, live_blocks_come_back_as_they_were)
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

Test(blocks, live_blocks_may_be_none)
{
    struct ttd_live_blocks list = list_of_blocks();
    list.count = 0;
    ttd_encode_live_blocks(&buffer, &list, columns);
    struct ttd_cursor cursor = decode_blocks(&list, NULL, 0, buffer.size);
    cr_assert_null(cursor.error);
}

Test(blocks, live_blocks_are_refused_where_they_are_truncated)
{
    struct ttd_live_blocks list = list_of_blocks();
    struct ttd_block decoded[BLOCKS];
    ttd_encode_live_blocks(&buffer, &list, columns);
    for (size_t size = 0; size < buffer.size; size++) {
        struct ttd_cursor cursor = decode_blocks(&list, decoded, BLOCKS, size);
        cr_assert_not_null(cursor.error);
    }
}

Test(blocks, live_blocks_must_be_as_many_as_the_header_says)
{
    struct ttd_live_blocks list = list_of_blocks();
    struct ttd_block decoded[BLOCKS + 1];
    ttd_encode_live_blocks(&buffer, &list, columns);
    struct ttd_cursor cursor = decode_blocks(&list, decoded, BLOCKS - 1, buffer.size);
    expect_error(&cursor, "bytes left over in the payload");
    cursor = decode_blocks(&list, decoded, BLOCKS + 1, buffer.size);
    cr_assert_not_null(cursor.error);
}

Test(blocks, live_blocks_must_be_in_order_of_address)
{
    struct ttd_block same[BLOCKS] = {blocks[0], blocks[0]};
    struct ttd_live_blocks list = list_of_blocks();
    list.blocks = same;
    ttd_encode_live_blocks(&buffer, &list, columns);
    expect_blocks_refused("blocks not in order of address");
}

Test(blocks, live_blocks_of_one_address_are_in_order_of_heap)
{
    struct ttd_block nested[BLOCKS] = {blocks[0], blocks[0]};
    struct ttd_live_blocks list = list_of_blocks();
    struct ttd_block decoded[BLOCKS];
    list.blocks = nested;
    nested[1].heap = nested[0].heap + 1;
    ttd_encode_live_blocks(&buffer, &list, columns);
    struct ttd_cursor cursor = decode_blocks(&list, decoded, BLOCKS, buffer.size);
    cr_assert_null(cursor.error, "%s", cursor.error);
    cr_assert_eq(decoded[1].address, decoded[0].address);
    cr_assert_eq(decoded[1].heap, decoded[0].heap + 1);
    list.blocks = nested;
    nested[0].heap = nested[1].heap + 1;
    ttd_buffer_clear(&buffer);
    ttd_encode_live_blocks(&buffer, &list, columns);
    expect_blocks_refused("blocks not in order of address");
}

Test(blocks, live_blocks_must_not_be_at_address_0)
{
    struct ttd_block nowhere[BLOCKS] = {blocks[0], blocks[1]};
    struct ttd_live_blocks list = list_of_blocks();
    list.blocks = nowhere;
    nowhere[0].address = 0;
    nowhere[0].heap = 7;
    ttd_encode_live_blocks(&buffer, &list, columns);
    expect_blocks_refused("blocks not in order of address");
}

Test(blocks, live_blocks_must_have_been_allocated)
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

Test(blocks, live_blocks_must_be_a_known_list)
{
    encode_with(TTD_BLOCKS_LIST, 0);
    expect_blocks_refused("list of blocks");
    ttd_buffer_clear(&buffer);
    encode_with(TTD_BLOCKS_LIST, TTD_BLOCKS_RUNTIME + 1);
    expect_blocks_refused("list of blocks");
}

Test(blocks, live_blocks_must_have_the_number_of_their_list)
{
    encode_with(TTD_BLOCKS_LIST_ID, 0);
    expect_blocks_refused("number of a list of blocks");
}

Test(blocks, live_blocks_must_not_have_unknown_flags)
{
    encode_with(TTD_BLOCKS_FLAGS, TTD_BLOCKS_LAST | 2);
    expect_blocks_refused("unknown flags of a list of blocks");
}

Test(blocks, live_blocks_must_have_reserved_bytes_of_zero)
{
    encode_with(TTD_BLOCKS_RESERVED, 1);
    expect_blocks_refused("reserved field is not zero");
}

/* ---- Lists in several chunks ---- */

static const char *take_of(struct ttd_list_state *state, uint32_t list_id, bool is_last,
                           uint64_t address)
{
    struct ttd_block block = {.address = address};
    struct ttd_live_blocks list = list_of_blocks();
    list.list_id = list_id;
    list.last = is_last;
    list.blocks = &block;
    list.count = 1;
    return ttd_list_take(state, &list);
}

static const char *take(struct ttd_list_state *state, bool is_last, uint64_t address)
{
    return take_of(state, 4, is_last, address);
}

Test(blocks, list_goes_on_with_higher_addresses)
{
    struct ttd_list_state state = {.is_open = false};
    cr_assert_null(take(&state, false, 10));
    cr_assert_null(take(&state, false, 11));
    cr_assert_str_eq(take(&state, true, 11), "order of blocks");
}

Test(blocks, list_that_has_ended_must_not_go_on)
{
    struct ttd_list_state state = {.is_open = false};
    cr_assert_null(take(&state, true, 10));
    cr_assert_str_eq(take(&state, true, 11), "continuation of a list of blocks");
}

Test(blocks, numbers_of_lists_must_rise)
{
    struct ttd_list_state state = {.is_open = false};
    cr_assert_null(take_of(&state, 4, false, 10));
    cr_assert_null(take_of(&state, 6, false, 5));
    cr_assert_str_eq(take_of(&state, 4, false, 11), "continuation of a list of blocks");
    cr_assert_str_eq(take_of(&state, 5, false, 5), "continuation of a list of blocks");
    cr_assert_null(take_of(&state, 6, true, 6));
}

Test(blocks, list_must_stay_at_its_position)
{
    struct ttd_list_state state = {.is_open = false};
    struct ttd_live_blocks list = list_of_blocks();
    list.count = 0;
    list.last = false;
    cr_assert_null(ttd_list_take(&state, &list));
    list.position.steps++;
    cr_assert_str_eq(ttd_list_take(&state, &list), "continuation of a list of blocks");
}
