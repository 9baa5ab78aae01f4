/* SPDX-License-Identifier: MIT */
/* The memory that allocators give blocks from. */
#include "snapshot/layout/layout_parts.h"

#include <stdlib.h>
#include <string.h>

#include "snapshot/layout/glibc.h"

static void add_heap(struct layout_search *search, const struct region *region, uint64_t begin,
                     uint64_t end, ttd_id allocator)
{
    struct region heap = {.begin = begin > region->begin ? begin : region->begin,
                          .end = end < region->end ? end : region->end,
                          .kind = TTD_REGION_HEAP,
                          .module = allocator};
    regions_add(&search->refined, &heap);
}

/* The first words of pages side by side, read at once. */
struct page_heads {
    struct memory memory;
    struct memory_batch *batch;
    uint64_t begin;
};

/* Reads the two words at the begin of a page, and ahead those of more pages before `end`. */
static bool page_head(struct page_heads *heads, uint64_t page, uint64_t end, uint64_t words[2])
{
    enum { SIZE = 2 * sizeof(uint64_t) };
    struct memory_batch *batch = heads->batch;
    size_t index = (page - heads->begin) / MEMORY_PAGE;
    if (!batch)
        batch = heads->batch = calloc(1, sizeof *batch);
    if (!batch)
        return false;
    if (page < heads->begin || index >= batch->count) {
        memory_batch_clear(batch);
        heads->begin = page;
        for (uint64_t next = page; next < end; next += MEMORY_PAGE)
            if (memory_batch_add(batch, next, SIZE, 0) == 0)
                break;
        memory_batch_read(batch, &heads->memory);
        index = 0;
    }
    memcpy(words, batch->pieces[index].bytes, SIZE);
    return true;
}

/* Adds the memory of arenas that begins at a page, if there is any. Returns where to look next. A
 * block that has a mapping of its own stays a part of that: it leaves nothing behind. */
static uint64_t add_arena_at(struct layout_search *search, const struct region *region,
                             struct page_heads *heads, uint64_t page, uint64_t end)
{
    const struct heap_pages *pages = search->subject->pages;
    struct memory_span part;
    uint64_t words[2];
    if (page % GLIBC_HEAP_ALIGNMENT == 0 && glibc_heap_find(search->memory, page, &part) &&
        heap_pages_touch(pages, part.begin, part.end)) {
        add_heap(search, region, part.begin, part.end, search->arena_module);
        return part.end;
    }
    if (!heap_pages_has(pages, page) || !page_head(heads, page, end, words))
        return page + MEMORY_PAGE;
    uint64_t size = glibc_mapped_size(words);
    if (size != 0 && size <= region->end - page)
        return page + size;
    if (!glibc_segment_find(search->memory, page, words, region->end, &search->arena, &part))
        return page + MEMORY_PAGE;
    add_heap(search, region, part.begin, part.end, search->arena_module);
    return part.end;
}

/* Adds the memory of arenas in a region: the heaps of arenas other than the main one, and the main
 * one's mappings. */
static void add_arenas(struct layout_search *search, const struct region *region)
{
    struct memory_span spans[MEMORY_SPANS];
    struct page_heads heads = {.memory = *search->memory};
    uint64_t address = (region->begin + MEMORY_PAGE - 1) / MEMORY_PAGE * MEMORY_PAGE;
    uint64_t end = region->end / MEMORY_PAGE * MEMORY_PAGE, next = address;
    while (address < end && !memory_is_late(&heads.memory)) {
        size_t count = memory_touched(&heads.memory, &address, end, spans);
        for (size_t i = 0; i < count; i++) {
            next = spans[i].begin > next ? spans[i].begin : next;
            while (next < spans[i].end)
                next = add_arena_at(search, region, &heads, next, spans[i].end);
        }
    }
    free(heads.batch);
}

/* Adds the heap pages of the program break that have held blocks of the main arena. All else there
 * belongs to the program: the program break is open to all. If the program has moved it, even
 * memory that has held blocks may be the program's now. */
static void add_heap_pages(struct layout_search *search, const struct region *region)
{
    const struct heap_pages *pages = search->subject->pages;
    ttd_id allocator = search->subject->moves_break ? TTD_NONE : search->arena_module;
    uint64_t begin = 0, end = region->end < pages->high ? region->end : pages->high;
    uint64_t address = region->begin > pages->low ? region->begin : pages->low;
    end = end < search->arena.end ? end : search->arena.end;
    for (address = address / HEAP_PAGE_SIZE * HEAP_PAGE_SIZE; address < end;
         address += HEAP_PAGE_SIZE) {
        bool is_heap = heap_pages_has(pages, address);
        if (is_heap && begin == 0)
            begin = address;
        if (!is_heap && begin != 0) {
            add_heap(search, region, begin, address, allocator);
            begin = 0;
        }
    }
    if (begin != 0)
        add_heap(search, region, begin, end, allocator);
}

/* Another allocator may keep anything beside its blocks, anywhere: a mapping with
 * blocks is all heap. */
void layout_add_heaps(struct layout_search *search)
{
    for (size_t i = 0; i < search->regions->count; i++) {
        const struct region *region = &search->regions->items[i];
        if (region->kind != TTD_REGION_ANONYMOUS ||
            !heap_pages_touch(search->subject->pages, region->begin, region->end))
            continue;
        if (!search->has_arena)
            add_heap(search, region, region->begin, region->end, TTD_NONE);
        else if (!region->name || strcmp(region->name, "[heap]") != 0)
            add_arenas(search, region);
        else
            add_heap_pages(search, region);
    }
    regions_refine(search->regions, &search->refined);
}
