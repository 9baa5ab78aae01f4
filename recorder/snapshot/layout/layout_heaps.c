/* SPDX-License-Identifier: MIT */
/* The memory that allocators give blocks from. */
#include "layout_parts.h"

#include <string.h>

#include "glibc.h"

static void add_heap(struct layout_search *search, const struct region *region, uint64_t begin,
                     uint64_t end)
{
    struct region heap = {.begin = begin > region->begin ? begin : region->begin,
                          .end = end < region->end ? end : region->end,
                          .kind = TTD_REGION_HEAP};
    regions_add(&search->refined, &heap);
}

/* Adds the heaps of arenas. A block that has a mapping of its own stays a part of that: it leaves
 * nothing behind. */
static void add_arenas(struct layout_search *search, const struct region *region)
{
    uint64_t first = (region->begin + GLIBC_HEAP_SIZE - 1) / GLIBC_HEAP_SIZE * GLIBC_HEAP_SIZE;
    for (uint64_t address = first; address < region->end; address += GLIBC_HEAP_SIZE) {
        struct memory_span heap;
        if (heap_pages_has(search->subject->pages, address) &&
            heap_pages_touch(search->subject->pages, address, address + HEAP_PAGE_SIZE) &&
            glibc_heap_find(search->memory, address, &heap))
            add_heap(search, region, heap.begin, heap.end);
    }
}

/* Adds the heap pages of the program break that have held blocks of the main arena. What else is
 * there belongs to the program: the program break is open to all. */
static void add_heap_pages(struct layout_search *search, const struct region *region)
{
    const struct heap_pages *pages = search->subject->pages;
    uint64_t begin = 0, end = region->end < pages->high ? region->end : pages->high;
    uint64_t address = region->begin > pages->low ? region->begin : pages->low;
    end = end < search->arena_end ? end : search->arena_end;
    for (address = address / HEAP_PAGE_SIZE * HEAP_PAGE_SIZE; address < end;
         address += HEAP_PAGE_SIZE) {
        bool is_heap = heap_pages_has(pages, address);
        if (is_heap && begin == 0)
            begin = address;
        if (!is_heap && begin != 0) {
            add_heap(search, region, begin, address);
            begin = 0;
        }
    }
    if (begin != 0)
        add_heap(search, region, begin, end);
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
            add_heap(search, region, region->begin, region->end);
        else if (region->name == NULL || strcmp(region->name, "[heap]") != 0)
            add_arenas(search, region);
        else
            add_heap_pages(search, region);
    }
    regions_refine(search->regions, &search->refined);
}
