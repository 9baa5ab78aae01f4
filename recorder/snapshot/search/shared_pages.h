/* SPDX-License-Identifier: MIT */
/**
 * Pages of shared memory that were searched for one process while others stood still: for these
 * nothing can have changed in them since but by yet other processes, as it can during any search.
 * So a page need not be read again for each of many processes that end at once.
 *
 * The search notes, for each chunk of pages, the heap pages that its words point into. A process
 * without a block in any of them has no reference in the chunk.
 */
#ifndef RECORDER_SNAPSHOT_SEARCH_SHARED_PAGES_H
#define RECORDER_SNAPSHOT_SEARCH_SHARED_PAGES_H

#include "snapshot/heap_pages.h"
#include "snapshot/layout/maps.h"

enum {
    SHARED_CHUNK_PAGES = 64,
    SHARED_CHUNK_VALUES = 48, /* heap pages that are noted of a chunk, at most */
    SHARED_CHUNKS = 4096,     /* that are kept: a gigabyte */
};

struct shared_chunk {
    uint64_t device, inode, index;        /* of the memory, and of the chunk in it */
    uint64_t since;                       /* when the search began; 0: nothing is known */
    uint64_t low;                         /* words of lower values were not looked at */
    uint64_t searched, empty;             /* a bit for each page; nobody has written an empty one */
    uint32_t value_count;                 /* more than SHARED_CHUNK_VALUES: some are missing */
    uint32_t values[SHARED_CHUNK_VALUES]; /* heap pages */
};

struct shared_pages;

/** Returns NULL if memory ran out. */
struct shared_pages *shared_pages_new(void);
void shared_pages_free(struct shared_pages *shared);

/** A search that uses the pages, and notes more if others may use those. */
struct shared_search {
    struct shared_pages *shared; /* NULL: neither */
    uint64_t still_since; /* when the process was seen standing still, which it does; 0: never */
    bool notes;           /* others stand still as well */
    uint64_t begin;       /* before any memory is read */
};

/** The time, of CLOCK_MONOTONIC. */
uint64_t shared_pages_now(void);

/** Pages of a chunk: a bit for each. */
struct shared_known {
    uint64_t needless; /* they need no search */
    uint64_t there;    /* they need one, and are in memory */
};

/** Returns the knowledge of the chunk at an address of a region of shared memory, for a process
 * with these heap pages. */
struct shared_known shared_pages_known(const struct shared_search *search,
                                       const struct region *region, uint64_t address,
                                       const struct heap_pages *pages);

/** Returns the chunk to which the search adds the pages that it reads, at an address of a region of
 * shared memory; NULL if it notes nothing. Words below `low` are not looked at. */
struct shared_chunk *shared_pages_note(const struct shared_search *search,
                                       const struct region *region, uint64_t address, uint64_t low);

/** The number of a page in its chunk. */
static inline unsigned shared_pages_number(const struct region *region, uint64_t address)
{
    return (unsigned)((address + region->shared_shift) / REGION_PAGE % SHARED_CHUNK_PAGES);
}

/** The cold path of shared_chunk_add(). */
void shared_chunk_add_new(struct shared_chunk *chunk, uint32_t page);

/** Notes the value of a word. `*last` is the heap page that was added last, at first 0. */
static inline void shared_chunk_add(struct shared_chunk *chunk, uint64_t value, uint32_t *last)
{
    uint32_t page = (uint32_t)(value >> HEAP_PAGE_BITS);
    if (value >> HEAP_ADDRESS_BITS != 0 || page == *last)
        return;
    *last = page;
    shared_chunk_add_new(chunk, page);
}

#endif
