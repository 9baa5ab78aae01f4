/* SPDX-License-Identifier: MIT */
/** Usage: the amounts that each call site allocates, and the lifetimes of its blocks. */
#ifndef ANALYZER_ANALYSES_ACTIVITY_USAGE_H
#define ANALYZER_ANALYSES_ACTIVITY_USAGE_H

#include "heap/site_table.h"
#include "heap/totals.h"
#include "travel/islands.h"
#include "travel/pass.h"

/** Calls of a thread between the allocation of a block and its release soon after it, at most. */
#define HEAP_USAGE_SOON 3

/** The allocations of one call site. */
struct heap_site {
    struct heap_key key;
    uint64_t allocations;
    struct heap_sum bytes;
    /** Temporary blocks: freed by the thread that allocated them, with at most
     * heap_usage_options.steps of its calls between. */
    uint64_t temporary;
    struct heap_sum temporary_bytes;
    /** The same with at most HEAP_USAGE_SOON calls between; 0 with options.only_temporary. */
    uint64_t soon;
    struct heap_sum soon_bytes;
    /** Blocks live at the end of the trace; and blocks that ended with their heap. */
    uint64_t never_released;
    uint64_t destroyed;
    /** Sum over blocks of size times lifetime in nanoseconds. Blocks never released count up to the
     * end of the trace, blocks that ended with their heap not at all. */
    struct heap_sum byte_time;
    /** Its lifetimes count: see heap_usage_options.filter. */
    bool has_lifetimes;
};

/** Returns the sum over blocks of size times lifetime in seconds. */
static inline double heap_site_byte_seconds(const struct heap_site *site)
{
    return heap_sum_real(site->byte_time) / 1e9;
}

enum heap_rank_order {
    HEAP_RANK_BY_CALLS,
    HEAP_RANK_BY_BYTES,
    HEAP_RANK_BY_LIFETIME,
    HEAP_RANK_BY_TEMPORARY,
    /** By key. */
    HEAP_RANK_BY_STACK
};

/** How lifetimes are measured: in nanoseconds, and in calls of the process from the allocation to
 * the release. */
enum heap_lifetime_kind { HEAP_LIFETIME_TIME, HEAP_LIFETIME_CALLS, HEAP_LIFETIME_KINDS };

/** Number of classes of lifetimes: see heap_class_of(). */
#define HEAP_LIFETIMES (HEAP_CLASS_MAX + 1)

/** The blocks of one class of lifetimes. */
struct heap_lifetime {
    uint64_t blocks;
    struct heap_sum bytes;
};

struct heap_usage_options {
    /** Largest number of calls of its thread between the allocation and the release of a temporary
     * block. */
    uint64_t steps;
    /** Order of heap_usage.sites. */
    enum heap_rank_order order;
    enum heap_split split;
    /** NULL, or counts only blocks that were allocated in these islands. */
    const struct heap_islands *islands;
    /** Fills heap_usage.lifetimes, with the stacks that the filter lets pass; NULL for all. */
    bool has_lifetimes;
    heap_stack_filter filter;
    void *filter_context;
    /** In a pass: counts only the threads, the allocations in all and the temporary blocks, freed
     * by the next call of their thread. Sites have nothing else; without islands. Takes a fraction
     * of the time.
     */
    bool only_temporary;
};

struct usage_finder;

struct heap_usage {
    struct heap_outcome outcome;
    struct heap_site total;
    struct heap_site *sites;
    size_t count;
    size_t capacity;
    struct heap_usage_options options;
    /** With options.only_temporary: the threads that have made calls. */
    size_t thread_count;
    /** With options.only_temporary: calls of no known thread, which count as one. */
    bool has_unknown_thread;
    /** With options.only_temporary: a thread made a call while its ReAlloc from NULL was under way,
     * as in a signal handler. The temporary blocks are to be counted without that option. */
    bool must_count;
    struct hash_map by_key;
    /** Released blocks, without those that ended with their heap, by class of lifetime. */
    struct heap_lifetime lifetimes[HEAP_LIFETIME_KINDS][HEAP_LIFETIMES];
    /** Private; NULL after heap_usage_end(). */
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
 * Finds the usage during a pass to the end of the trace.
 *
 * @param usage    release with heap_usage_free(), also on failure; stays where it is
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_usage_watch(struct heap_usage *usage, const struct heap_usage_options *options,
                                 struct heap_pass *pass);

/** Completes it when the pass has ended. */
void heap_usage_end(struct heap_usage *usage);

/**
 * Presents the sites as a table of call sites, weighted by the value that options.order names; for
 * HEAP_RANK_BY_LIFETIME that is bytes times microseconds. For HEAP_RANK_BY_TEMPORARY, bytes and
 * count are sums of temporary blocks.
 */
struct heap_site_table heap_usage_site_table(struct heap_usage *usage);

#endif
