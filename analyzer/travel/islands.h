/* SPDX-License-Identifier: MIT */
/**
 * Islands: ranges of a thread's calls that the program has assigned to a client and an activity. A
 * thread is in the island that was started last and has not been stopped. Outside of all islands
 * its calls belong to no client and activity 0.
 */
#ifndef ANALYZER_TRAVEL_ISLANDS_H
#define ANALYZER_TRAVEL_ISLANDS_H

#include "base/map.h"
#include "travel/marks.h"
#include "travel/trace.h"

/** Selects islands by client, activity or both; zeros select all. */
struct heap_island_filter {
    bool has_client;
    uint8_t client[16];
    bool has_activity;
    uint64_t activity;
};

/** The start of an island; or its stop, which starts a range of no client. */
struct heap_island {
    ttd_id thread;
    struct ttd_position begin;
    bool is_wanted;
};

/** The islands of a trace; all zero when empty. */
struct heap_islands {
    struct heap_island_filter filter;
    /** Sorted by thread, then by begin. */
    struct heap_island *items;
    size_t count;
    size_t capacity;
};

/**
 * Reads the islands of a trace, and leaves the reader at the end.
 *
 * @param islands  set on TTD_OK; release with heap_islands_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_islands_read(const struct heap_trace *trace,
                                  const struct heap_island_filter *filter,
                                  struct heap_islands *islands, struct ttd_error *error);
void heap_islands_free(struct heap_islands *islands);

/** Whether a filter names a client or an activity. */
static inline bool heap_island_filter_is_given(const struct heap_island_filter *filter)
{
    return filter->has_client || filter->has_activity;
}

/** Whether the calls of a thread at a position are in an island that the filter selects. */
bool heap_islands_want(const struct heap_islands *islands, ttd_id thread,
                       struct ttd_position position);

/** Whether a block was allocated in an island that the filter selects; true if `islands` is NULL.
 */
static inline bool heap_islands_want_block(const struct heap_islands *islands,
                                           const struct heap_block *block)
{
    return !islands || heap_islands_want(islands, block->thread, block->allocated);
}

/** Whether the filter selects any island of the trace, or the calls outside of all islands. */
bool heap_islands_have_any(const struct heap_islands *islands);

#endif
