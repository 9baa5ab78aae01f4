/* SPDX-License-Identifier: MIT */
#include "base/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/pages.h"

/* Tables from this size on are large pages of their own. Mapping one large page is faster than
 * faulting in the same memory in small pages. */
#define LARGE ((size_t)128 << 10)

static size_t round_up(size_t size)
{
    return (size + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
}

/* Maps memory aligned to a large page, which the system does not do by itself. */
static void *map_pages(size_t size)
{
    if (size > SIZE_MAX - LARGE_PAGE)
        return NULL;
    char *pages = mmap(NULL, size + LARGE_PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    size_t before = (LARGE_PAGE - (uintptr_t)pages % LARGE_PAGE) % LARGE_PAGE;
    if (before)
        munmap(pages, before);
    munmap(pages + before + size, LARGE_PAGE - before);
    pages_hint(pages + before, size);
    return pages + before;
}

static void *resize_small(void *old, size_t old_size, size_t size)
{
    char *table = realloc(old, size);
    if (table)
        memset(table + old_size, 0, size - old_size);
    return table;
}

static void *make_large(void *old, size_t old_size, size_t size)
{
    void *table = map_pages(round_up(size));
    if (table && old) {
        memcpy(table, old, old_size);
        free(old);
    }
    return table;
}

/* Grows a mapping. The system moves its pages to a free range instead of copying them. */
static void *resize_large(void *old, size_t old_size, size_t size)
{
    if (old_size == size)
        return old;
    void *address = map_pages(size);
    if (!address)
        return NULL;
    void *table = mremap(old, old_size, size, MREMAP_MAYMOVE | MREMAP_FIXED, address);
    return table == MAP_FAILED ? NULL : table;
}

void *table_resize(void *old, size_t old_size, size_t size)
{
    if (size < LARGE)
        return resize_small(old, old_size, size);
    if (size > SIZE_MAX / 2)
        return NULL;
    if (old_size < LARGE)
        return make_large(old, old_size, size);
    return resize_large(old, round_up(old_size), round_up(size));
}

size_t table_next(size_t capacity, size_t size)
{
    capacity *= 2;
    while (capacity * size >= LARGE && capacity * size <= LARGE_PAGE / 2)
        capacity *= 2;
    return capacity;
}

void table_free(void *table, size_t size)
{
    if (size < LARGE)
        free(table);
    else
        munmap(table, round_up(size));
}
