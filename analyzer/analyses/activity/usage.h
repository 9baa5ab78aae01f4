/* SPDX-License-Identifier: MIT */
/** Usage: the amounts that each call site allocates, and the lifetimes of its blocks. */
#ifndef ANALYZER_ANALYSES_ACTIVITY_USAGE_H
#define ANALYZER_ANALYSES_ACTIVITY_USAGE_H

#include "heap/groups.h"
#include "heap/totals.h"
#include "travel/pass.h"

/** Allocations with one stack. */
struct heap_site {
    struct heap_key key;
    uint64_t allocations;
    struct heap_sum bytes;
    /** Freed by the same thread with at most so many calls between as were asked for. */
    uint64_t temporary;
    struct heap_sum temporary_bytes;
    /** Not released at the end of the trace; and released with their heap. */
    uint64_t never_released;
    uint64_t destroyed;
    /**
     * Sum of bytes times seconds, for which those never released count up to the end of the trace,
     * those destroyed not at all.
     */
    double byte_seconds;
};

enum heap_rank_order {
    HEAP_RANK_BY_CALLS,
    HEAP_RANK_BY_BYTES,
    HEAP_RANK_BY_LIFETIME,
    HEAP_RANK_BY_TEMPORARY,
    /** By key. */
    HEAP_RANK_BY_STACK
};

/** Classes of lifetimes: see heap_class_of(). */
#define HEAP_LIFETIMES (HEAP_CLASS_MAX + 1)

struct heap_lifetime {
    uint64_t blocks;
    struct heap_sum bytes;
};

struct heap_usage_options {
    /** Calls of its thread that may lie between allocation and release of a temporary block. */
    uint64_t steps;
    /** Orders usage->sites. */
    enum heap_rank_order order;
    enum heap_split split;
    /** Set usage->by_time and usage->by_calls. */
    bool has_lifetimes;
};

struct usage_finder;

struct heap_usage {
    struct heap_outcome outcome;
    struct heap_site total;
    struct heap_site *sites;
    size_t count;
    size_t capacity;
    struct heap_usage_options options;
    struct hash_map by_key;
    /** Blocks released other than with their heap, by stack and, in key.other, the class of their
     * lifetime in nanoseconds, or in calls of the process from the one that allocated to the one
     * that released. */
    struct heap_groups by_time;
    struct heap_groups by_calls;
    /** Until heap_usage_end(). */
    struct usage_finder *finder;
};

/**
 * Replays the whole trace.
 *
 * @param options  copied
 * @param usage    set on TTD_OK; release with heap_usage_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_usage_find(const struct heap_trace *trace,
                                const struct heap_usage_options *options, struct heap_usage *usage,
                                struct ttd_error *error);
void heap_usage_free(struct heap_usage *usage);

/**
 * Makes the usage a part of a pass to the end of the trace. It uses `user` of blocks.
 *
 * @param usage    release with heap_usage_free(), also on failure; stays where it is
 * @param watcher  set on TTD_OK
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_usage_watch(struct heap_usage *usage, const struct heap_usage_options *options,
                                 struct heap_watcher *watcher);

/** Completes it when the pass has ended; the outcome is the caller's. */
void heap_usage_end(struct heap_usage *usage);

/**
 * The sites as a table. Their weight is what they are ordered by, for HEAP_RANK_BY_LIFETIME bytes
 * times microseconds; bytes and count are those of temporary blocks for HEAP_RANK_BY_TEMPORARY.
 */
struct heap_site_table heap_usage_site_table(struct heap_usage *usage);

/** Sums up usage->by_time or usage->by_calls: of all stacks by class. */
void heap_lifetimes_sum(const struct heap_groups *groups,
                        struct heap_lifetime lifetimes[HEAP_LIFETIMES]);

#endif
