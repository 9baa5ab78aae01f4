/* SPDX-License-Identifier: MIT */
#include "codec/heap_state/memory_map.h"

#include "codec/columns.h"
#include "layout.h"

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
static void get_run(struct ttd_cursor *cursor, uint32_t page_size, uint64_t *next,
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
        get_run(cursor, map->page_size, &next, &runs[i]);
    ttd_cursor_finish(cursor);
}
