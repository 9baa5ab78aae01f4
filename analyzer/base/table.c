/* SPDX-License-Identifier: MIT */
#include "base/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/grow.h"

/* From here on a table is pages of its own. */
#define LARGE 65536

static void *map_pages(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
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
    void *table = map_pages(size);
    if (table && old) {
        memcpy(table, old, old_size);
        free(old);
    }
    return table;
}

static void *resize_large(void *old, size_t old_size, size_t size)
{
    void *table = mremap(old, old_size, size, MREMAP_MAYMOVE);
    return table == MAP_FAILED ? NULL : table;
}

void *table_resize(void *old, size_t old_size, size_t size)
{
    if (size < LARGE)
        return resize_small(old, old_size, size);
    void *table =
        old_size < LARGE ? make_large(old, old_size, size) : resize_large(old, old_size, size);
    grow_hint(table, size);
    return table;
}

void table_free(void *table, size_t size)
{
    if (size < LARGE)
        free(table);
    else
        munmap(table, size);
}
