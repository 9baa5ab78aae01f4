/* SPDX-License-Identifier: MIT */
/** A trace as queries take it: what reads it, what makes travelling in it fast, who watches. */
#ifndef ANALYZER_TRAVEL_TRACE_H
#define ANALYZER_TRAVEL_TRACE_H

#include "travel/keyframes.h"

/** Tells by the names of a stack what a trace itself does not list. */
struct heap_stack_judge {
    void *context;
    /** Whether the runtimes keep all blocks of a stack; NULL if nobody can tell, or they keep none.
     * May be asked for the same stack again and again. */
    bool (*keeps)(void *context, ttd_id stack);
};

/** Sees every batch that a query reads, events before they are applied. */
struct heap_batch_hook {
    void *context;
    /** Anything but TTD_OK ends the replay with that status. */
    enum ttd_status (*batch)(void *context, const struct ttd_batch *batch);
    struct heap_stack_judge judge;
};

/** Owns nothing: all of it must outlive the query. */
struct heap_trace {
    /** Tolerant of damage. Nobody else may use it during a query, which leaves it anywhere. */
    struct ttd_reader *reader;
    /** The index of the trace; NULL for none. No answer depends on it. */
    const struct heap_keyframes *keyframes;
    /** Sees every batch that a query reads, for progress and messages; zeros for none. Its judge
     * tells blocks of the runtimes by the names of their stacks. */
    struct heap_batch_hook hook;
    /** Replays read only what they need: the trace was checked by another one. */
    bool is_checked;
};

/** Whether a status ends the readable part of a trace, which may be shorter than the trace. */
static inline bool heap_is_over(enum ttd_status status)
{
    return status == TTD_END || status == TTD_ERROR_TRUNCATED || status == TTD_ERROR_LIMIT;
}

/** The position right before another. 0:0 is the first one, and is returned itself. */
static inline struct ttd_position heap_position_before(struct ttd_position position)
{
    if (position.steps)
        return (struct ttd_position){position.sequence, position.steps - 1};
    if (position.sequence)
        return (struct ttd_position){position.sequence - 1, UINT64_MAX};
    return position;
}

#endif
