/* SPDX-License-Identifier: MIT */
#include "heap/tables.h"

void heap_tables_init(struct heap_tables *tables)
{
    static const enum heap_split splits[HEAP_TABLES] = {HEAP_SPLIT_NONE, HEAP_SPLIT_HEAP,
                                                        HEAP_SPLIT_THREAD, HEAP_SPLIT_SIZE};
    for (size_t i = 0; i < HEAP_TABLES; i++) {
        heap_groups_init(&tables->by[i]);
        tables->by[i].split = splits[i];
        tables->by[i].has_stacks = i == HEAP_BY_STACK;
    }
}

void heap_tables_free(struct heap_tables *tables)
{
    for (size_t i = 0; i < HEAP_TABLES; i++)
        heap_groups_free(&tables->by[i]);
}

void heap_tables_clear(struct heap_tables *tables)
{
    heap_tables_free(tables);
    heap_tables_init(tables);
}

enum ttd_status heap_tables_add(struct heap_tables *tables, const struct heap_block *block)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < HEAP_TABLES && status == TTD_OK; i++)
        status = heap_groups_add(&tables->by[i], block);
    return status;
}

enum ttd_status heap_tables_sort(struct heap_tables *tables)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < HEAP_TABLES && status == TTD_OK; i++)
        status = heap_groups_sort(&tables->by[i]);
    return status;
}
