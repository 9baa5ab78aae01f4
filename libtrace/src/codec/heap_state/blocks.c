/* SPDX-License-Identifier: MIT */
#include "codec/heap_state/blocks.h"

#include "codec/columns.h"

/* There is room for it in all columns. */
static void append_block(struct ttd_buffer columns[TTD_BLOCK_COLUMN_COUNT],
                         const struct ttd_block *last, const struct ttd_block *block)
{
    /* Neighbours are alike, so each column has differences. Addresses are rotated first: their low
     * bits, which alignment makes zero, become the high ones and cost nothing. */
    uint64_t address = ttd_rotate_right(block->address, TTD_ADDRESS_ROTATION) -
                       ttd_rotate_right(last->address, TTD_ADDRESS_ROTATION);
    struct ttd_position since = {block->allocated.sequence - last->allocated.sequence,
                                 block->allocated.steps - last->allocated.steps};
    ttd_buffer_append_varint(&columns[TTD_BLOCK_ADDRESSES], ttd_zigzag(address));
    ttd_buffer_append_varint(&columns[TTD_BLOCK_SIZES], block->size);
    ttd_buffer_append_varint(&columns[TTD_BLOCK_EVENTS], ttd_zigzag(block->event - last->event));
    ttd_buffer_append_varint(&columns[TTD_BLOCK_SEQUENCES], ttd_zigzag(since.sequence));
    ttd_buffer_append_varint(&columns[TTD_BLOCK_STEPS], ttd_zigzag(since.steps));
    ttd_buffer_append_varint(&columns[TTD_BLOCK_THREADS], block->thread);
    ttd_buffer_append_varint(&columns[TTD_BLOCK_HEAPS], block->heap);
    ttd_buffer_append_varint(&columns[TTD_BLOCK_STACKS],
                             ttd_zigzag((uint64_t)block->stack - last->stack));
    struct ttd_buffer *apis = &columns[TTD_BLOCK_APIS];
    apis->data[apis->size++] = block->api;
}

void ttd_encode_live_blocks(struct ttd_buffer *buffer, const struct ttd_live_blocks *blocks,
                            struct ttd_buffer columns[TTD_BLOCK_COLUMN_COUNT])
{
    ttd_buffer_put32(buffer, blocks->list);
    ttd_buffer_put32(buffer, blocks->list_id);
    ttd_buffer_put32(buffer, blocks->last ? TTD_BLOCKS_LAST : 0);
    ttd_buffer_put32(buffer, 0);
    ttd_encode_fixed_position(buffer, blocks->position);
    /* Room for the longest varints at once: appending a block then checks nothing. */
    bool has_room = true;
    for (size_t i = 0; i < TTD_BLOCK_COLUMN_COUNT; i++) {
        ttd_buffer_clear(&columns[i]);
        has_room = ttd_buffer_reserve(&columns[i], blocks->count * TTD_VARINT_MAX) && has_room;
    }
    for (size_t i = 0; i < blocks->count && has_room; i++) {
        static const struct ttd_block no_block = {.event = TTD_UNKNOWN};
        append_block(columns, i ? &blocks->blocks[i - 1] : &no_block, &blocks->blocks[i]);
    }
    ttd_join_columns(buffer, columns, TTD_BLOCK_COLUMN_COUNT);
}

static ttd_id get_stack(struct ttd_cursor *cursor, ttd_id last)
{
    uint64_t stack = last + ttd_unzigzag(ttd_cursor_varint(cursor));
    if (stack > UINT32_MAX)
        ttd_cursor_fail(cursor, "id of a stack");
    return (ttd_id)stack;
}

static void get_block(struct ttd_cursor *columns, const struct ttd_block *last,
                      struct ttd_block *block)
{
    uint64_t address = ttd_rotate_right(last->address, TTD_ADDRESS_ROTATION) +
                       ttd_unzigzag(ttd_cursor_varint(&columns[TTD_BLOCK_ADDRESSES]));
    block->address = ttd_rotate_left(address, TTD_ADDRESS_ROTATION);
    block->size = ttd_cursor_varint(&columns[TTD_BLOCK_SIZES]);
    block->event = last->event + ttd_unzigzag(ttd_cursor_varint(&columns[TTD_BLOCK_EVENTS]));
    block->allocated.sequence =
        last->allocated.sequence + ttd_unzigzag(ttd_cursor_varint(&columns[TTD_BLOCK_SEQUENCES]));
    block->allocated.steps =
        last->allocated.steps + ttd_unzigzag(ttd_cursor_varint(&columns[TTD_BLOCK_STEPS]));
    if (!ttd_position_is_valid(block->allocated))
        ttd_cursor_fail(&columns[TTD_BLOCK_SEQUENCES], "invalid position");
    block->thread = ttd_cursor_varint32(&columns[TTD_BLOCK_THREADS]);
    block->heap = ttd_cursor_varint32(&columns[TTD_BLOCK_HEAPS]);
    /* Without an order a block could be listed twice. */
    if (!ttd_block_follows(block, last->address, last->heap))
        ttd_cursor_fail(&columns[TTD_BLOCK_ADDRESSES], "blocks not in order of address");
    block->stack = get_stack(&columns[TTD_BLOCK_STACKS], last->stack);
    block->api = ttd_cursor_get8(&columns[TTD_BLOCK_APIS]);
}

void ttd_decode_live_blocks(struct ttd_cursor *cursor, struct ttd_live_blocks *list,
                            struct ttd_block *blocks)
{
    uint32_t kind = ttd_cursor_get32(cursor);
    if (kind < TTD_BLOCKS_KEYFRAME || kind > TTD_BLOCKS_RUNTIME)
        ttd_cursor_fail(cursor, "list of blocks");
    list->list = (enum ttd_block_list)kind;
    list->list_id = ttd_cursor_get32(cursor);
    if (list->list_id == 0)
        ttd_cursor_fail(cursor, "number of a list of blocks");
    uint32_t flags = ttd_cursor_get32(cursor);
    if (flags & ~TTD_BLOCKS_LAST)
        ttd_cursor_fail(cursor, "unknown flags of a list of blocks");
    list->last = flags & TTD_BLOCKS_LAST;
    ttd_cursor_reserved32(cursor);
    list->position = ttd_decode_fixed_position(cursor);
    list->blocks = blocks;
    struct ttd_cursor columns[TTD_BLOCK_COLUMN_COUNT];
    ttd_split_columns(cursor, columns, TTD_BLOCK_COLUMN_COUNT);
    struct ttd_block last = {.event = TTD_UNKNOWN};
    for (size_t i = 0; i < list->count; i++) {
        get_block(columns, &last, &blocks[i]);
        last = blocks[i];
    }
    ttd_finish_columns(cursor, columns, TTD_BLOCK_COLUMN_COUNT);
}

const char *ttd_list_take(struct ttd_list_state *state, const struct ttd_live_blocks *blocks)
{
    bool continues = state->is_open && blocks->list_id == state->list_id;
    if (continues && (blocks->list != state->list ||
                      ttd_position_compare(blocks->position, state->position) != 0))
        return "continuation of a list of blocks";
    /* Numbers of lists rise, so one that is not larger is of a list that has ended. */
    if (!continues && blocks->list_id <= state->list_id)
        return "continuation of a list of blocks";
    const struct ttd_block *first = blocks->count ? &blocks->blocks[0] : NULL;
    if (continues && first && !ttd_block_follows(first, state->address, state->heap))
        return "order of blocks";
    struct ttd_block last = {.address = continues ? state->address : 0,
                             .heap = continues ? state->heap : TTD_NONE};
    if (first)
        last = blocks->blocks[blocks->count - 1];
    *state = (struct ttd_list_state){.list = blocks->list,
                                     .list_id = blocks->list_id,
                                     .is_open = !blocks->last,
                                     .position = blocks->position,
                                     .address = last.address,
                                     .heap = last.heap};
    return NULL;
}
