/* SPDX-License-Identifier: MIT */
/**
 * The calls that were under way when the process died of a fault, such as an abort() inside free():
 * the last call of a thread, if it never returned.
 */
#ifndef ANALYZER_ANALYSES_ERRORS_LAST_CALLS_H
#define ANALYZER_ANALYSES_ERRORS_LAST_CALLS_H

#include "analyses/errors/errors.h"

/** Threads that are inside a call at the end; more are not told. */
#define HEAP_LAST_CALLS_MAX 16

struct heap_last_calls {
    /** The signal that the process died of; 0 if it did not, or another process may have sent it.
     */
    uint32_t signal;
    struct heap_finding calls[HEAP_LAST_CALLS_MAX];
    size_t count;
};

/** Begins with a trace of which nothing was replayed yet. */
void heap_last_calls_begin(struct heap_last_calls *last_calls, struct ttd_reader *reader);

/** Takes note of a call; true if it may be the last one of its thread: heap_last_calls_add(). */
bool heap_last_calls_see(struct heap_last_calls *last_calls, const struct ttd_event *event);

/** Adds such a call, and what lies in memory around the block that it was given. */
void heap_last_calls_add(struct heap_last_calls *last_calls, const struct heap_finding *call,
                         const struct heap_live *live);

/**
 * At the end of the trace: turns the calls that are left into findings, or marks those that there
 * are of them, and puts them first.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_last_calls_report(const struct heap_last_calls *last_calls,
                                       struct heap_errors *errors);

#endif
