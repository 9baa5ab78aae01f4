/* SPDX-License-Identifier: MIT */
/** How blocks are used: which call sites allocate how much, for how long. */
#ifndef ANALYZER_HEAP_USAGE_H
#define ANALYZER_HEAP_USAGE_H

#include "heap/pass.h"
#include "heap/rows.h"
#include "heap/totals.h"

/** What was allocated with one stack, or by one size of lifetime. */
typedef struct heap_site {
    heap_key key;
    uint64_t allocations;
    heap_sum bytes;
    /** Freed by the same thread with at most so many calls between as were asked for. */
    uint64_t temporary;
    heap_sum temporary_bytes;
    /** Not released at the end of the trace; and released with their heap. */
    uint64_t never_released;
    uint64_t destroyed;
    /**
     * Sum of bytes times seconds, for which those never released count up to the end of the trace,
     * those destroyed not at all.
     */
    double byte_seconds;
} heap_site;

typedef enum heap_site_order {
    HEAP_SITES_BY_CALLS,
    HEAP_SITES_BY_BYTES,
    HEAP_SITES_BY_LIFETIME,
    HEAP_SITES_BY_TEMPORARY
} heap_site_order;

/** Classes of lifetimes: 0, 1, 2 to 3, 4 to 7, … */
#define HEAP_LIFETIMES 65

typedef struct heap_lifetime {
    uint64_t blocks;
    heap_sum bytes;
} heap_lifetime;

typedef struct heap_usage {
    heap_site total;
    heap_site *sites;
    size_t count;
    size_t capacity;
    heap_split split;
    heap_site_order order;
    hash_map by_key;
    /** Blocks released other than with their heap, by nanoseconds, and by calls of the process
     * from the one that allocated to the one that released. */
    heap_lifetime by_time[HEAP_LIFETIMES];
    heap_lifetime by_calls[HEAP_LIFETIMES];
    heap_outcome outcome;
} heap_usage;

/**
 * Goes through the whole trace.
 *
 * @param steps  calls of its thread that may lie between allocation and release of a temporary
 * block
 * @param order  of usage->sites
 * @param split  of usage->sites
 * @param usage  set on TTD_OK; release with heap_usage_free()
 * Others and statuses as heap_pass_run().
 */
ttd_status heap_usage_find(ttd_reader *reader, uint64_t steps, heap_site_order order,
                           heap_split split, const heap_batch_hook *hook, heap_usage *usage,
                           ttd_error *error);
void heap_usage_free(heap_usage *usage);

/**
 * The sites as rows. Their weight is what they are ordered by, for HEAP_SITES_BY_LIFETIME bytes
 * times microseconds; bytes and count are those of temporary blocks for HEAP_SITES_BY_TEMPORARY.
 */
heap_rows heap_usage_rows(heap_usage *usage);

/** The lifetimes of a class, both included. */
void heap_lifetime_class(unsigned index, uint64_t *first, uint64_t *last);

#endif
