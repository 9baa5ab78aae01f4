/* SPDX-License-Identifier: MIT */
/** The trace that a query is made of: its reader, its index, and a hook for progress. */
#ifndef ANALYZER_TRAVEL_HEAP_TRACE_H
#define ANALYZER_TRAVEL_HEAP_TRACE_H

#include <ttdtrace/advanced.h>

#include "heap/groups.h"
#include "travel/keyframes.h"

/** Whether a trace has wall times: not if its first chunk is lost, nor if its unit leaves no time
 * but 0. */
static inline bool trace_has_times(const struct ttd_trace *trace)
{
    return trace->time_unit != 0 && trace->time_unit != UINT64_MAX;
}

/** Judges by the names in a stack whether the C and C++ runtimes keep its blocks; traces list only
 * some of these blocks. */
struct heap_stack_judge {
    void *context;
    /** Whether the runtimes keep all blocks allocated with a stack. Must be fast for a stack that
     * it was asked about before. NULL if there are no names, or no such stack. */
    bool (*keeps)(void *context, ttd_id stack);
};

/** A function that allocates blocks, or one that calls it. */
struct heap_caller {
    /** The return address, as in struct ttd_stack; for an inlined function, its caller's. */
    ttd_id module;
    uint64_t offset;
    /** Its name, a string; TTD_NONE if it is unknown. */
    ttd_id function;
};

#define HEAP_CALLERS 3
#define HEAP_HEADERS 2

/** The innermost functions of a stack, except wrappers of allocators. */
struct heap_callers {
    size_t count;
    struct heap_caller items[HEAP_CALLERS];
    /** The innermost one of these wrappers, perhaps the program's own with a header before the
     * data. Its module is TTD_NONE if there is none. */
    struct heap_caller wrapper;
    /** By its name, the innermost one allocates strings of the library sds, hash tables of Rust, or
     * instances of GLib's types; or a wrapper among them allocates a page of GLib's slices. */
    bool is_sds;
    bool is_hash_table;
    bool is_instance;
    bool is_slice_page;
    /** By its name, the innermost one or a wrapper hands out pointers behind headers of these
     * sizes, or with a bit set, and to a record of the last size at the end of the block; 0 if that
     * is unknown. */
    uint32_t headers[HEAP_HEADERS];
    uint32_t trailer;
};

/** Lists the functions that allocate with a stack. */
struct heap_stack_callers {
    void *context;
    /** Sets `callers` (all zero). NULL if stacks are not known. */
    void (*list)(void *context, ttd_id stack, struct heap_callers *callers);
};

/** Is called with every batch that a query reads, before the replay applies its events. */
struct heap_batch_hook {
    void *context;
    /** Anything but TTD_OK ends the replay with that status. */
    enum ttd_status (*batch)(void *context, const struct ttd_batch *batch);
    /** Is called instead with each chunk of events that a query nets and does not read, from the
     * last to the first (see heap_end_blocks_find()) or in order (see heap_forward_replay()); NULL
     * if not wanted. Another thread may call it while the caller of the query waits, but never two
     * at once. */
    enum ttd_status (*net)(void *context, const struct ttd_chunk *chunk,
                           const struct ttd_netted *netted);
    struct heap_stack_judge judge;
    struct heap_stack_callers callers;
};

/** Borrows everything: its members must outlive the query. */
struct heap_trace {
    /** Tolerant of damage. Only the query may use it while it runs, and leaves it at an undefined
     * position. */
    struct ttd_reader *reader;
    /** The index of the trace; NULL for none. It changes the time that an answer takes, not the
     * answer. */
    const struct heap_keyframes *keyframes;
    /** For progress, messages, and blocks of the runtimes; zeros for none. */
    struct heap_batch_hook hook;
    /** The blocks that the recorder has chosen, if it did. */
    struct heap_choice choice;
    /** An earlier pass has checked the whole trace, so a replay reads only the kinds that it
     * needs. */
    bool is_checked;
    /** Another thread replays the trace at the same time, through a reader of its own: there is no
     * processor for a third one that reads ahead. */
    bool is_one_of_two;
    /** Threads that net chunks at the same time; 0 is 1. More than 1 only if the input of the
     * reader and its allocator may be used by several threads. */
    uint64_t threads;
};

/** Whether a reader's status means that nothing more can be read: the end of the trace, or an
 * earlier end of its readable part. */
static inline bool heap_is_over(enum ttd_status status)
{
    return status == TTD_END || status == TTD_ERROR_TRUNCATED || status == TTD_ERROR_LIMIT;
}

/** Whether a position stands for the end of every trace. */
static inline bool heap_is_end(struct ttd_position position)
{
    return ttd_position_compare(position, ttd_position_max()) == 0;
}

/** Returns the position right before another; 0:0 for 0:0, the first one. */
static inline struct ttd_position heap_position_before(struct ttd_position position)
{
    if (position.steps)
        return (struct ttd_position){position.sequence, position.steps - 1};
    if (position.sequence)
        return (struct ttd_position){position.sequence - 1, UINT64_MAX};
    return position;
}

/** The position right after another one. */
static inline struct ttd_position heap_position_after(struct ttd_position position)
{
    position.sequence += position.steps == UINT64_MAX;
    position.steps++;
    return position;
}

#endif
