/* SPDX-License-Identifier: MIT */
#include "codec/heap_state/heap_states.h"

#include <string.h>

#include "codec/columns.h"
#include "layout.h"

/* There is room for it in all columns. */
static void states_append_block(struct ttd_buffer columns[TTD_BLOCK_COLUMN_COUNT],
                                const struct ttd_block *last, const struct ttd_block *block)
{
    /* Neighbours are alike, so each column has differences. Addresses are rotated first: their low
     * bits (zero by alignment) become the high ones and cost nothing. */
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
        states_append_block(columns, i ? &blocks->blocks[i - 1] : &no_block, &blocks->blocks[i]);
    }
    ttd_join_columns(buffer, columns, TTD_BLOCK_COLUMN_COUNT);
}

static ttd_id states_get_stack(struct ttd_cursor *cursor, ttd_id last)
{
    uint64_t stack = last + ttd_unzigzag(ttd_cursor_varint(cursor));
    if (stack > UINT32_MAX)
        ttd_cursor_fail(cursor, "id of a stack");
    return (ttd_id)stack;
}

static void states_get_block(struct ttd_cursor *columns, const struct ttd_block *last,
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
    block->stack = states_get_stack(&columns[TTD_BLOCK_STACKS], last->stack);
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
        states_get_block(columns, &last, &blocks[i]);
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

/* Binary digits of a size. */
#define SIZE_CLASS_MAX 64

/* ---- States ---- */

/* The counts of a keyframe or a summary, in the order of the record. */
static size_t states_list_counts(struct ttd_state *state, uint64_t *counts[6 + TTD_STATE_ACTIONS])
{
    size_t n = 0;
    counts[n++] = &state->next_event;
    counts[n++] = &state->events;
    counts[n++] = &state->failed;
    counts[n++] = &state->unfinished;
    counts[n++] = &state->unknown_releases;
    counts[n++] = &state->overlaps;
    for (size_t i = 0; i < TTD_STATE_ACTIONS; i++)
        counts[n++] = &state->actions[i];
    return n;
}

void ttd_encode_state(struct ttd_buffer *buffer, const struct ttd_state *state)
{
    struct ttd_state copy = *state;
    uint64_t *counts[6 + TTD_STATE_ACTIONS];
    ttd_buffer_put_varint(buffer, state->form);
    ttd_encode_position(buffer, state->position);
    ttd_buffer_put_varint(buffer, state->blocks);
    if (state->form == TTD_STATE_PEAK) {
        ttd_buffer_put_varint(buffer, state->bytes_high);
        ttd_buffer_put_varint(buffer, state->bytes);
        return;
    }
    size_t count = states_list_counts(&copy, counts);
    for (size_t i = 0; i < count; i++)
        ttd_buffer_put_varint(buffer, *counts[i]);
    if (state->form != TTD_STATE_SUMMARY)
        return;
    ttd_buffer_put_varint(buffer, state->sums);
    ttd_encode_position(buffer, state->end);
}

void ttd_decode_state(struct ttd_cursor *cursor, struct ttd_state *state)
{
    memset(state, 0, sizeof *state);
    state->form = (enum ttd_state_form)ttd_cursor_varint_max(cursor, TTD_STATE_PEAK);
    state->position = ttd_decode_position(cursor);
    state->blocks = ttd_cursor_varint(cursor);
    if (state->form == TTD_STATE_PEAK) {
        state->bytes_high = ttd_cursor_varint(cursor);
        state->bytes = ttd_cursor_varint(cursor);
    } else {
        uint64_t *counts[6 + TTD_STATE_ACTIONS];
        size_t count = states_list_counts(state, counts);
        for (size_t i = 0; i < count; i++)
            *counts[i] = ttd_cursor_varint(cursor);
    }
    if (state->form == TTD_STATE_SUMMARY) {
        state->sums = ttd_cursor_varint(cursor);
        state->end = ttd_decode_position(cursor);
    }
    ttd_cursor_check(cursor, ttd_check_state(state));
}

const char *ttd_check_state(const struct ttd_state *state)
{
    if (state->form < TTD_STATE_KEYFRAME || state->form > TTD_STATE_PEAK)
        return "form of a state";
    if (!ttd_position_is_valid(state->position))
        return "invalid position";
    if (state->unknown_releases > state->events || state->overlaps > state->events)
        return "counts of a state";
    if (state->form != TTD_STATE_SUMMARY)
        return NULL;
    /* The invalid position, for the end of the trace, compares as the last of all. */
    if (!ttd_position_is_canonical(state->end) ||
        ttd_position_compare(state->position, state->end) > 0)
        return "end of a summary";
    return NULL;
}

/* ---- Sums ---- */

void ttd_encode_sum(struct ttd_buffer *buffer, const struct ttd_sum *sum)
{
    ttd_buffer_put_varint(buffer, sum->table);
    ttd_buffer_put_varint(buffer, sum->key);
    ttd_buffer_put8(buffer, sum->api);
    ttd_buffer_put_varint(buffer, sum->blocks);
    ttd_buffer_put_varint(buffer, sum->bytes);
    if (sum->table != TTD_SUMS_BY_STACK)
        return;
    ttd_encode_position(buffer, sum->first);
    ttd_encode_position(buffer, sum->last);
}

void ttd_decode_sum(struct ttd_cursor *cursor, struct ttd_sum *sum)
{
    memset(sum, 0, sizeof *sum);
    sum->table = (enum ttd_sum_table)ttd_cursor_varint_max(cursor, TTD_SUMS_BY_SIZE);
    sum->key = ttd_cursor_varint32(cursor);
    sum->api = ttd_cursor_get8(cursor);
    sum->blocks = ttd_cursor_varint(cursor);
    sum->bytes = ttd_cursor_varint(cursor);
    if (sum->table == TTD_SUMS_BY_STACK) {
        sum->first = ttd_decode_position(cursor);
        sum->last = ttd_decode_position(cursor);
    }
    ttd_cursor_check(cursor, ttd_check_sum(sum));
}

const char *ttd_check_sum(const struct ttd_sum *sum)
{
    if (sum->table < TTD_SUMS_BY_STACK || sum->table > TTD_SUMS_BY_SIZE)
        return "table of a sum";
    if (sum->table == TTD_SUMS_BY_SIZE && sum->key > SIZE_CLASS_MAX)
        return "size of a sum";
    if (!sum->blocks)
        return "sum of no blocks";
    if (sum->table != TTD_SUMS_BY_STACK)
        return NULL;
    if (!ttd_position_is_valid(sum->first) || !ttd_position_is_valid(sum->last))
        return "invalid position";
    return ttd_position_compare(sum->first, sum->last) > 0 ? "positions of a sum" : NULL;
}

bool ttd_page_size_is_valid(uint64_t size)
{
    return size >= TTD_PAGE_SIZE_MIN && size <= TTD_PAGE_SIZE_MAX && (size & (size - 1)) == 0;
}

void ttd_encode_pages(struct ttd_buffer *buffer, const struct ttd_pages *pages)
{
    ttd_buffer_put32(buffer, pages->page_size);
    ttd_buffer_put32(buffer, 0);
    ttd_buffer_put(buffer, pages->data, (size_t)pages->count * pages->page_size);
}

void ttd_decode_pages(struct ttd_cursor *cursor, struct ttd_pages *pages)
{
    pages->page_size = ttd_cursor_get32(cursor);
    ttd_cursor_reserved32(cursor);
    if (!ttd_page_size_is_valid(pages->page_size))
        ttd_cursor_fail(cursor, "page size");
    if (pages->first_page < TTD_PAGE_FIRST)
        ttd_cursor_fail(cursor, "id of the first page");
    pages->data = cursor->next;
    /* In 64 bits the product of two 32-bit numbers cannot overflow. */
    if (ttd_cursor_left(cursor) != (uint64_t)pages->count * pages->page_size)
        ttd_cursor_fail(cursor, "size of the pages");
    cursor->next = cursor->end;
}

void ttd_encode_memory_map(struct ttd_buffer *buffer, const struct ttd_memory_map *map)
{
    ttd_buffer_put32(buffer, map->snapshot);
    ttd_buffer_put32(buffer, map->last ? TTD_MAP_LAST : 0);
    ttd_encode_fixed_position(buffer, map->position);
    ttd_buffer_put32(buffer, map->page_size);
    ttd_buffer_put32(buffer, 0);
    uint64_t next = 0;
    for (size_t i = 0; i < map->count; i++) {
        const struct ttd_memory_run *run = &map->runs[i];
        ttd_buffer_put_varint(buffer, (run->address - next) / map->page_size);
        ttd_buffer_put_varint(buffer, run->page_count);
        ttd_buffer_put_varint(buffer, run->protection);
        ttd_buffer_put_varint(buffer, run->page);
        next = run->address + run->page_count * map->page_size;
    }
}

/** One run; `*next` is the page number after the run before. */
static void states_get_run(struct ttd_cursor *cursor, uint32_t page_size, uint64_t *next,
                           struct ttd_memory_run *run)
{
    /* The number of pages of the address space; of pages of one byte it would not fit. */
    uint64_t pages = UINT64_MAX / page_size + (page_size > 1);
    uint64_t page = *next + ttd_cursor_varint_max(cursor, pages - *next);
    run->page_count = ttd_cursor_varint_max(cursor, pages - page);
    if (run->page_count == 0)
        ttd_cursor_fail(cursor, "run without pages");
    run->address = page * page_size;
    run->protection = (uint32_t)ttd_cursor_varint_max(cursor, TTD_MEMORY_MASK);
    run->page = ttd_cursor_varint(cursor);
    if (run->page >= TTD_PAGE_FIRST && run->page_count > UINT64_MAX - run->page)
        ttd_cursor_fail(cursor, "page of a run");
    *next = page + run->page_count;
}

void ttd_decode_memory_map(struct ttd_cursor *cursor, struct ttd_memory_map *map,
                           struct ttd_memory_run *runs)
{
    map->snapshot = ttd_cursor_get32(cursor);
    if (map->snapshot == 0)
        ttd_cursor_fail(cursor, "number of a snapshot");
    uint32_t flags = ttd_cursor_get32(cursor);
    if (flags & ~TTD_MAP_LAST)
        ttd_cursor_fail(cursor, "unknown flags of a memory map");
    map->last = flags & TTD_MAP_LAST;
    map->position = ttd_decode_fixed_position(cursor);
    map->page_size = ttd_cursor_get32(cursor);
    ttd_cursor_reserved32(cursor);
    /* Runs are computed by dividing by it. */
    if (!ttd_page_size_is_valid(map->page_size)) {
        ttd_cursor_fail(cursor, "page size");
        return;
    }
    map->runs = runs;
    uint64_t next = 0;
    for (size_t i = 0; i < map->count; i++)
        states_get_run(cursor, map->page_size, &next, &runs[i]);
    ttd_cursor_finish(cursor);
}
