/* SPDX-License-Identifier: MIT */
/* Closing traces. Names take a while: other processes add them, while we go on collecting. */
#ifndef TTD_COLLECT_TRACE_CLOSERS_H
#define TTD_COLLECT_TRACE_CLOSERS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace.h"

/* Traces that wait have their files open: the program waits rather than that there be more. */
enum { TRACE_CLOSERS_MAX = 16, TRACE_CLOSERS_WAITING = 256 };

/* A trace that is to be closed. */
struct closing_trace {
    struct trace *trace;
    struct ttd_end end;
    bool is_requested; /* its names were asked for */
};

struct trace_closers {
    struct symbolize_cache *names; /* shared by all; NULL if there is none */
    pid_t pids[TRACE_CLOSERS_MAX];
    size_t count;
    /* Those for which there was no process: a ring, whose oldest is at `first`. */
    struct closing_trace waiting[TRACE_CLOSERS_WAITING];
    size_t first, waiting_count;
    unsigned failures;    /* traces that are not whole */
    int64_t requested_at; /* when names were last asked for, by milliseconds() */
};

void trace_closers_init(struct trace_closers *closers);
void trace_closers_free(struct trace_closers *closers);

/* Has the names looked up that a trace will need, as far as that is known: it can be closed sooner
 * then. */
void trace_closers_prepare(struct trace_closers *closers, struct trace *trace);

/* Whether there is room for another trace that is to be closed. Waits a moment if there is none. */
bool trace_closers_have_room(struct trace_closers *closers);

/* Closes a trace, for which there is room, sooner or later, and releases it. */
void trace_closers_add(struct trace_closers *closers, struct trace *trace,
                       const struct ttd_end *end);

/* Goes on with the oldest of the traces that wait. False if that is not possible yet, or there are
 * none. */
bool trace_closers_step(struct trace_closers *closers);

/*
 * Waits until all traces are closed. If `*interrupts` changes meanwhile, they are closed without
 * the names that are not found yet.
 */
void trace_closers_wait(struct trace_closers *closers, const volatile sig_atomic_t *interrupts);

#endif
