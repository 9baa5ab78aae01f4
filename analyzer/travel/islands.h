/* SPDX-License-Identifier: MIT */
/**
 * The user events of a trace: marks, islands and samples of memory. An island is a range of a
 * thread's calls that the program has assigned to a client and an activity. A thread is in the
 * island that was started last and has not been stopped. Outside of all islands its calls belong to
 * no client and activity 0.
 */
#ifndef ANALYZER_TRAVEL_ISLANDS_H
#define ANALYZER_TRAVEL_ISLANDS_H

#include <stdbool.h>
#include <ttdtrace/trace.h>

#include "base/hash_map.h"
#include "travel/heap_trace.h"

/* Marks: the user events of a trace, interpreted. Events of the clients that the format reserves
 * mark islands and changes of recording. */

enum heap_mark_kind {
    /** An event of a client of the program. */
    HEAP_MARK_EVENT,
    /** A text from outside of the program. */
    HEAP_MARK_OUTSIDE,
    HEAP_MARK_OPENED,
    HEAP_MARK_CLOSED,
    /** A change of recording: see ttd_thread_event. */
    HEAP_MARK_STARTED,
    HEAP_MARK_STOPPED,
    HEAP_MARK_THROTTLED,
    HEAP_MARK_PAUSED,
    HEAP_MARK_RESUMED,
    HEAP_MARK_RESET,
    /** A sample of the memory of the process; no mark for people. */
    HEAP_MARK_MEMORY
};

struct heap_mark {
    enum heap_mark_kind kind;
    const struct ttd_user_event *event;
    /** The client that the mark is about; zeros for none. */
    uint8_t client[16];
    /** The activity and the throttle of an island; 0 for marks of other kinds. */
    uint64_t activity;
    uint64_t maximum;
    /** The fields of a sample of memory, by enum ttd_memory_field. */
    uint64_t memory[TTD_MEMORY_EVENT_FIELDS];
    /** The user's data. */
    struct ttd_string data;
};

/** Returns the static name of a kind, such as "event". */
const char *heap_mark_kind_name(enum heap_mark_kind kind);

/** Interprets a user event. The mark points into `event`. An event of a reserved client whose data
 * does not have the form that the spec gives is an ordinary HEAP_MARK_EVENT. */
struct heap_mark heap_mark_of(const struct ttd_user_event *event);

/** Whether a position written as `mark:TEXT` means this mark. */
bool heap_mark_is_named(const struct heap_mark *mark, const char *text);

/** Selects islands by client, activity or both; zeros select all. */
struct heap_island_filter {
    bool has_client;
    uint8_t client[16];
    bool has_activity;
    uint64_t activity;
};

/** The start of an island; or its stop: this starts a range of no client. */
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

/* Samples of the memory of the process, heap or not, which the recorder takes now and then. */

struct heap_memory_sample {
    struct ttd_position position;
    uint64_t wall_time;
    /** Bytes. */
    uint64_t resident;
    uint64_t mapped;
};

/** All zero when empty. */
struct heap_memory_samples {
    /** In the order of the trace. */
    struct heap_memory_sample *items;
    size_t count;
    size_t capacity;
    /** The most of all samples, and of the times between them where the system knows it. */
    uint64_t most_resident;
    uint64_t most_mapped;
};

/** Adds a mark of the kind HEAP_MARK_MEMORY. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status heap_memory_samples_add(struct heap_memory_samples *samples,
                                        const struct heap_mark *mark);

/**
 * Reads the samples of a trace, and leaves the reader at the end.
 *
 * @param samples  set on TTD_OK; release with heap_memory_samples_free()
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_IO, and others of a reader.
 */
enum ttd_status heap_memory_samples_read(const struct heap_trace *trace,
                                         struct heap_memory_samples *samples,
                                         struct ttd_error *error);
void heap_memory_samples_free(struct heap_memory_samples *samples);

#endif
