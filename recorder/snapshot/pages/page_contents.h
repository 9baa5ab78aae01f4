/* SPDX-License-Identifier: MIT */
/** Copies the contents of a process's heaps, page by page. The store beside it knows no process. */
#ifndef RECORDER_SNAPSHOT_PAGES_PAGE_CONTENTS_H
#define RECORDER_SNAPSHOT_PAGES_PAGE_CONTENTS_H

#include "snapshot/heap_pages.h"
#include "snapshot/layout/maps.h"
#include "snapshot/pages/page_store.h"
#include "snapshot/process_memory.h"

struct contents_job {
    struct memory *memory;
    const struct heap_pages *pages;
    struct page_store *store;    /* has begun a snapshot */
    bool is_stopped;             /* all threads are: the set of pages does not change */
    void (*tick)(void *context); /* is called every few milliseconds */
    void *context;
};

/**
 * Adds to the store all memory of the regions that has held blocks. Pages that were never touched
 * are zeros if the threads are stopped, else they may be gone, and are not captured. Neither is the
 * rest of the memory at the deadline. Pages that went away meanwhile are unreadable. Returns how
 * many bytes were not captured or could not be read.
 */
uint64_t contents_copy(const struct contents_job *job, const struct regions *regions);

/** A part of memory: whole pages, with their protection, a sum of TTD_MEMORY_... */
struct contents_part {
    uint64_t begin, end;
    uint32_t protection;
};

/** Adds to the store all of the parts, by address, whether it was ever touched or not; likewise. */
uint64_t contents_dump(const struct contents_job *job, const struct contents_part *parts,
                       size_t count);

#endif
