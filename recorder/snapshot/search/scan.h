/* SPDX-License-Identifier: MIT */
/** Searches regions for words that may point into blocks, and writes these. */
#ifndef RECORDER_SNAPSHOT_SEARCH_SCAN_H
#define RECORDER_SNAPSHOT_SEARCH_SCAN_H

#include "snapshot/calls.h"
#include "snapshot/heap_pages.h"
#include "snapshot/layout/maps.h"
#include "snapshot/layout/process_layout.h"
#include "snapshot/process_memory.h"
#include "snapshot/search/classes.h"
#include "snapshot/search/shared_pages.h"

/* The ranges where tables of virtual functions may be: the modules of a process in its memory. */

struct tables {
    struct classes classes;
    struct class_range *ranges;
    size_t range_count;
    /** Heap pages that have constant data of modules, or data that was copied from there: an
     * address in no such page is no table. */
    struct heap_pages pages;
};

/** The words that are searched for, until the deadline of the memory, and the trace that they go
 * to.
 */
struct scan_job {
    struct memory *memory;
    const struct heap_pages *pages;
    struct tables *tables; /* words of the heap may also point to these */
    uint64_t references_max;
    bool leaves_absent; /* shared memory that the process has not touched is not searched */
    const struct snapshot_calls *calls;
    /** Finds the pages of shared memory that are in memory: a byte for each, whose lowest bit
     * counts. Returns false if that cannot be known. May be NULL. */
    bool (*resident)(void *context, struct memory_span span, unsigned char *pages);
    struct shared_search shared;
    void (*tick)(void *context); /* is called every few milliseconds */
    void *context;
};

struct scan_result {
    uint64_t references;
    uint64_t searched; /* bytes */
    uint64_t missing;  /* bytes that are there, or may be, and were not searched */
    bool is_complete;
    bool is_written;
};

/** Registers are a region that is in no memory. */
struct scan_registers {
    uint32_t region; /* its number */
    uint32_t count;
    uint64_t valid; /* a bit for each */
    const uint64_t *values;
};

struct scan;

/** Returns NULL if there is no memory. */
struct scan *scan_open(const struct scan_job *job);

/** Searches words that are in no memory of the process, likewise. */
void scan_words(struct scan *scan, uint32_t region, const uint64_t *words, size_t count);

/** Searches registers, before any memory. */
void scan_registers(struct scan *scan, const struct scan_registers *registers);

/** Searches a region of memory; it must stay until the search is closed. Numbers rise from call to
 * call. */
void scan_region(struct scan *scan, const struct region *region, uint32_t number);

/** Searches the parts of the regions so far that were put off: the memory may be another one from
 * now on. */
void scan_settle(struct scan *scan);

/** Ends the search, and writes the rest. */
struct scan_result scan_close(struct scan *scan);

#endif
