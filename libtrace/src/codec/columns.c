/* SPDX-License-Identifier: MIT */
#include "codec/columns.h"

#include <string.h>

#include "base/memory.h"

void ttd_split_columns(struct ttd_cursor *in, struct ttd_cursor *columns, size_t count)
{
    struct ttd_cursor lengths = ttd_cursor_split(in, 4 * count);
    for (size_t i = 0; i < count; i++)
        columns[i] = ttd_cursor_split(in, ttd_cursor_get32(&lengths));
    ttd_cursor_finish(in);
}

static void put_columns(struct ttd_buffer *out, const struct ttd_buffer *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out->failed |= columns[i].failed;
        ttd_buffer_put32(out, (uint32_t)columns[i].size);
    }
    for (size_t i = 0; i < count; i++)
        ttd_buffer_put(out, columns[i].data, columns[i].size);
}

/* There is room for it in all columns. */
static void append_block(struct ttd_buffer columns[TTD_BLOCK_COLUMN_COUNT],
                         const struct ttd_block *last, const struct ttd_block *block)
{
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

void ttd_encode_live_blocks(struct ttd_buffer *out, const struct ttd_live_blocks *blocks,
                            struct ttd_buffer work[TTD_BLOCK_COLUMN_COUNT])
{
    ttd_buffer_put32(out, blocks->list);
    ttd_buffer_put32(out, blocks->list_id);
    ttd_buffer_put32(out, blocks->last ? TTD_BLOCKS_LAST : 0);
    ttd_buffer_put32(out, 0);
    ttd_buffer_put64(out, blocks->position.sequence);
    ttd_buffer_put64(out, blocks->position.steps);
    bool has_room = true;
    for (size_t i = 0; i < TTD_BLOCK_COLUMN_COUNT; i++) {
        ttd_buffer_clear(&work[i]);
        has_room = ttd_buffer_reserve(&work[i], blocks->count * TTD_VARINT_MAX) && has_room;
    }
    for (size_t i = 0; i < blocks->count && has_room; i++) {
        static const struct ttd_block none = {.event = TTD_UNKNOWN};
        append_block(work, i ? &blocks->blocks[i - 1] : &none, &blocks->blocks[i]);
    }
    put_columns(out, work, TTD_BLOCK_COLUMN_COUNT);
}

static ttd_id get_stack(struct ttd_cursor *in, ttd_id last)
{
    uint64_t stack = last + ttd_unzigzag(ttd_cursor_varint(in));
    if (stack > UINT32_MAX)
        ttd_cursor_fail(in, "id of a stack");
    return (ttd_id)stack;
}

static void get_block(struct ttd_cursor *columns, const struct ttd_block *last,
                      struct ttd_block *block)
{
    uint64_t address = ttd_rotate_right(last->address, TTD_ADDRESS_ROTATION) +
                       ttd_unzigzag(ttd_cursor_varint(&columns[TTD_BLOCK_ADDRESSES]));
    block->address = ttd_rotate_left(address, TTD_ADDRESS_ROTATION);
    if (block->address <= last->address)
        ttd_cursor_fail(&columns[TTD_BLOCK_ADDRESSES], "blocks not in order of address");
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
    block->stack = get_stack(&columns[TTD_BLOCK_STACKS], last->stack);
    block->api = ttd_cursor_get8(&columns[TTD_BLOCK_APIS]);
}

static struct ttd_position get_valid_position(struct ttd_cursor *in)
{
    struct ttd_position position;
    position.sequence = ttd_cursor_get64(in);
    position.steps = ttd_cursor_get64(in);
    if (!ttd_position_is_valid(position))
        ttd_cursor_fail(in, "invalid position");
    return position;
}

void ttd_decode_live_blocks(struct ttd_cursor *in, struct ttd_live_blocks *list,
                            struct ttd_block *blocks)
{
    uint32_t kind = ttd_cursor_get32(in);
    if (kind < TTD_BLOCKS_KEYFRAME || kind > TTD_BLOCKS_RUNTIME)
        ttd_cursor_fail(in, "list of blocks");
    list->list = (enum ttd_block_list)kind;
    list->list_id = ttd_cursor_get32(in);
    if (list->list_id == 0)
        ttd_cursor_fail(in, "number of a list of blocks");
    uint32_t flags = ttd_cursor_get32(in);
    if (flags & ~TTD_BLOCKS_LAST)
        ttd_cursor_fail(in, "unknown flags of a list of blocks");
    list->last = flags & TTD_BLOCKS_LAST;
    ttd_cursor_reserved32(in);
    list->position = get_valid_position(in);
    list->blocks = blocks;
    struct ttd_cursor columns[TTD_BLOCK_COLUMN_COUNT];
    ttd_split_columns(in, columns, TTD_BLOCK_COLUMN_COUNT);
    struct ttd_block last = {.event = TTD_UNKNOWN};
    for (size_t i = 0; i < list->count; i++) {
        get_block(columns, &last, &blocks[i]);
        last = blocks[i];
    }
    for (size_t i = 0; i < TTD_BLOCK_COLUMN_COUNT; i++) {
        ttd_cursor_finish(&columns[i]);
        if (columns[i].error)
            ttd_cursor_fail(in, columns[i].error);
    }
}

const char *ttd_list_take(struct ttd_list_state *state, const struct ttd_live_blocks *blocks)
{
    bool continues = state->is_open && blocks->list_id == state->list_id;
    if (continues && (blocks->list != state->list ||
                      ttd_position_compare(blocks->position, state->position) != 0))
        return "continuation of a list of blocks";
    if (continues && blocks->count != 0 && blocks->blocks[0].address <= state->address)
        return "order of blocks";
    uint64_t before = continues ? state->address : 0;
    *state = (struct ttd_list_state){
        .list = blocks->list,
        .list_id = blocks->list_id,
        .is_open = !blocks->last,
        .position = blocks->position,
        .address = blocks->count != 0 ? blocks->blocks[blocks->count - 1].address : before};
    return NULL;
}

void ttd_encode_memory_map(struct ttd_buffer *out, const struct ttd_memory_map *map)
{
    ttd_buffer_put32(out, map->snapshot);
    ttd_buffer_put32(out, map->last ? TTD_MAP_LAST : 0);
    ttd_buffer_put64(out, map->position.sequence);
    ttd_buffer_put64(out, map->position.steps);
    ttd_buffer_put32(out, map->page_size);
    ttd_buffer_put32(out, 0);
    uint64_t next = 0;
    for (size_t i = 0; i < map->count; i++) {
        const struct ttd_memory_run *run = &map->runs[i];
        ttd_buffer_put_varint(out, (run->address - next) / map->page_size);
        ttd_buffer_put_varint(out, run->page_count);
        ttd_buffer_put_varint(out, run->protection);
        ttd_buffer_put_varint(out, run->page);
        next = run->address + run->page_count * map->page_size;
    }
}

/** One run; `*next` is the page number after the run before. */
static void get_run(struct ttd_cursor *in, uint32_t page_size, uint64_t *next,
                    struct ttd_memory_run *run)
{
    uint64_t pages = UINT64_MAX / page_size + (page_size > 1);
    uint64_t page = *next + ttd_cursor_varint_max(in, pages - *next);
    run->page_count = ttd_cursor_varint_max(in, pages - page);
    if (run->page_count == 0)
        ttd_cursor_fail(in, "run without pages");
    run->address = page * page_size;
    run->protection = (uint32_t)ttd_cursor_varint_max(in, TTD_MEMORY_MASK);
    run->page = ttd_cursor_varint(in);
    if (run->page >= TTD_PAGE_FIRST && run->page_count > UINT64_MAX - run->page)
        ttd_cursor_fail(in, "page of a run");
    *next = page + run->page_count;
}

void ttd_decode_memory_map(struct ttd_cursor *in, struct ttd_memory_map *map,
                           struct ttd_memory_run *runs)
{
    map->snapshot = ttd_cursor_get32(in);
    if (map->snapshot == 0)
        ttd_cursor_fail(in, "number of a snapshot");
    uint32_t flags = ttd_cursor_get32(in);
    if (flags & ~TTD_MAP_LAST)
        ttd_cursor_fail(in, "unknown flags of a memory map");
    map->last = flags & TTD_MAP_LAST;
    map->position = get_valid_position(in);
    map->page_size = ttd_cursor_get32(in);
    ttd_cursor_reserved32(in);
    if (!ttd_page_size_is_valid(map->page_size)) {
        ttd_cursor_fail(in, "page size");
        return;
    }
    map->runs = runs;
    uint64_t next = 0;
    for (size_t i = 0; i < map->count; i++)
        get_run(in, map->page_size, &next, &runs[i]);
    ttd_cursor_finish(in);
}

bool ttd_page_size_is_valid(uint64_t size)
{
    return size >= TTD_PAGE_SIZE_MIN && size <= TTD_PAGE_SIZE_MAX && (size & (size - 1)) == 0;
}

void ttd_encode_pages(struct ttd_buffer *out, const struct ttd_pages *pages)
{
    ttd_buffer_put32(out, pages->page_size);
    ttd_buffer_put32(out, 0);
    ttd_buffer_put(out, pages->data, (size_t)pages->count * pages->page_size);
}

void ttd_decode_pages(struct ttd_cursor *in, struct ttd_pages *pages)
{
    pages->page_size = ttd_cursor_get32(in);
    ttd_cursor_reserved32(in);
    if (!ttd_page_size_is_valid(pages->page_size))
        ttd_cursor_fail(in, "page size");
    if (pages->first_page < TTD_PAGE_FIRST)
        ttd_cursor_fail(in, "id of the first page");
    pages->data = in->at;
    if (ttd_cursor_left(in) != (uint64_t)pages->count * pages->page_size)
        ttd_cursor_fail(in, "size of the pages");
    in->at = in->end;
}
