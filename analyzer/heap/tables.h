/* SPDX-License-Identifier: MIT */
/** Live blocks summed up from several points of view, each by itself. */
#ifndef ANALYZER_HEAP_TABLES_H
#define ANALYZER_HEAP_TABLES_H

#include "heap/groups.h"

/** The tables. All but the first are of all stacks together. */
enum {
    HEAP_BY_STACK,
    HEAP_BY_HEAP,
    HEAP_BY_THREAD,
    /** By heap_class_of(). */
    HEAP_BY_SIZE,
    HEAP_TABLES
};

typedef struct heap_tables {
    heap_groups by[HEAP_TABLES];
} heap_tables;

void heap_tables_init(heap_tables *tables);
void heap_tables_free(heap_tables *tables);

/** Makes it as it was after heap_tables_init(). */
void heap_tables_clear(heap_tables *tables);

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
ttd_status heap_tables_add(heap_tables *tables, const heap_block *block);

/** As heap_groups_sort(). */
ttd_status heap_tables_sort(heap_tables *tables);

#endif
