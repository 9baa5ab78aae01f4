/* SPDX-License-Identifier: MIT */
/** Sums of the live blocks by stack, heap, thread and size, each in a table of its own. */
#ifndef ANALYZER_HEAP_TABLES_H
#define ANALYZER_HEAP_TABLES_H

#include "heap/groups.h"

/** The tables. All but the first sum over all stacks. */
enum {
    HEAP_BY_STACK,
    HEAP_BY_HEAP,
    HEAP_BY_THREAD,
    /** By heap_class_of(). */
    HEAP_BY_SIZE,
    HEAP_TABLES
};

struct heap_tables {
    struct heap_groups by[HEAP_TABLES];
};

void heap_tables_init(struct heap_tables *tables);
void heap_tables_free(struct heap_tables *tables);

/** Empties the tables: they are as after heap_tables_init(). */
void heap_tables_clear(struct heap_tables *tables);

/** @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_tables_add(struct heap_tables *tables, const struct heap_block *block);

/** Sorts each table like heap_groups_sort(). */
enum ttd_status heap_tables_sort(struct heap_tables *tables);

#endif
