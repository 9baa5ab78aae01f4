/* SPDX-License-Identifier: MIT */
/* The ranges where tables of virtual functions may be: the modules of a process in its memory. */
#ifndef RECORDER_SNAPSHOT_SEARCH_TABLES_H
#define RECORDER_SNAPSHOT_SEARCH_TABLES_H

#include "snapshot/search/classes.h"
#include "snapshot/heap_pages.h"
#include "snapshot/layout/layout.h"

struct tables {
    struct classes classes;
    struct class_range *ranges;
    size_t range_count;
    /* Heap pages that have constant data of modules, or data that was copied from there: what lies
       in no such page is no table. */
    struct heap_pages pages;
};

/* Begins to tell tables. The memory must stay open. Without memory none is told. */
void tables_open(struct tables *tables, const struct layout *layout,
                 const struct snapshot_subject *subject, struct memory *memory);
void tables_close(struct tables *tables);

#endif
