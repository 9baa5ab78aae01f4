/* SPDX-License-Identifier: MIT */
/* Tables on a system without mappings: they take the place of table.c there. */
#include <stdlib.h>
#include <string.h>

#include "base/table.h"

void *table_resize(void *old, size_t old_size, size_t size)
{
    if (!old)
        return calloc(1, size);
    char *table = realloc(old, size);
    if (table)
        memset(table + old_size, 0, size - old_size);
    return table;
}

size_t table_next(size_t capacity, size_t size)
{
    (void)size;
    return 2 * capacity;
}

void table_free(void *table, size_t size)
{
    (void)size;
    free(table);
}

void table_free_used(void *table, size_t size, size_t used)
{
    (void)used;
    table_free(table, size);
}

void table_give_back(void *table, size_t size)
{
    table_free(table, size);
}

void pages_hint(void *memory, size_t size)
{
    (void)memory;
    (void)size;
}

void pages_map(void *memory, size_t size)
{
    (void)memory;
    (void)size;
}

void pages_prepare(void)
{
}

void table_give_back_kept(void)
{
}
