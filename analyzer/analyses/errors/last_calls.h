/* SPDX-License-Identifier: MIT */
/**
 * The call that was under way when the process died of a fault, such as an abort() inside free():
 * the last call of the thread that died, if it never returned. If the trace does not tell which
 * thread died, that of each thread; if several never returned, none of them is certain.
 */
#ifndef ANALYZER_ANALYSES_ERRORS_LAST_CALLS_H
#define ANALYZER_ANALYSES_ERRORS_LAST_CALLS_H

#include "analyses/errors/errors.h"
#include "analyses/errors/fatal.h"

/** Limit on the calls that are kept; those of any more threads are left out. */
#define HEAP_LAST_CALLS_MAX 16

struct heap_last_calls {
    /** The signal of the fault that the process died of; 0 if it did not die of a signal, or if
     * another process may have sent the signal. */
    uint32_t signal;
    /** The thread that died; TTD_NONE if that is not known. */
    ttd_id thread;
    struct heap_finding calls[HEAP_LAST_CALLS_MAX];
    size_t count;
};

/** Initializes the table for a trace, before the replay. `fatal` is its fatal signal, or NULL. */
void heap_last_calls_begin(struct heap_last_calls *last_calls, struct ttd_reader *reader,
                           const struct heap_fatal *fatal);

/** Handles a call: drops an earlier call of its thread, which was not the last one. Returns true if
 * this one may be the last, because it did not return: then heap_last_calls_add() adds it. */
bool heap_last_calls_see(struct heap_last_calls *last_calls, const struct ttd_event *event);

/** Adds a call that may be the last one of its thread, with the neighbours of its address. */
void heap_last_calls_add(struct heap_last_calls *last_calls, const struct heap_finding *call,
                         const struct heap_live *live);

/**
 * Reports the calls that are left at the end of the trace: makes a finding of each, or adds the
 * signal to the finding that it already has, and puts these findings first.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status heap_last_calls_report(struct heap_last_calls *last_calls,
                                       struct heap_errors *errors);

#endif
