/* SPDX-License-Identifier: MIT */
/**
 * Islands: which client and which activity the heap calls of each thread belong to. A thread is in
 * the island that was started last and not stopped; before any, and between them, it is in one of
 * no client and activity 0.
 */
#ifndef ANALYZER_TRAVEL_ISLANDS_H
#define ANALYZER_TRAVEL_ISLANDS_H

#include "base/map.h"
#include "travel/marks.h"
#include "travel/trace.h"

/** The islands that are wanted; zeros for all. */
struct heap_island_filter {
    bool has_client;
    uint8_t client[16];
    bool has_activity;
    uint64_t activity;
};

/** A begin of an island; or an end, which begins one of nobody. */
struct heap_island {
    ttd_id thread;
    struct ttd_position begin;
    bool is_wanted;
};

/** The islands of a trace. All zero when empty: then none is wanted. */
struct heap_islands {
    struct heap_island_filter filter;
    /** By thread, then begin. */
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

/** Whether what a thread did at a position is in an island that is wanted. */
bool heap_islands_want(const struct heap_islands *islands, ttd_id thread,
                       struct ttd_position position);

/** Whether a block was allocated in an island that is wanted; true if `islands` is NULL. */
static inline bool heap_islands_want_block(const struct heap_islands *islands,
                                           const struct heap_block *block)
{
    return !islands || heap_islands_want(islands, block->thread, block->allocated);
}

/** Whether any island of the trace, other than that of nobody, is wanted. */
bool heap_islands_have_any(const struct heap_islands *islands);

#endif
