/* SPDX-License-Identifier: MIT */
/** Closes traces. Other processes look names up meanwhile, so that the collector can go on. */
#ifndef RECORDER_COLLECT_TRACE_CLOSERS_H
#define RECORDER_COLLECT_TRACE_CLOSERS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/trace/process_trace.h"

/** Waiting traces keep their files open, so their number is limited; the program waits instead. */
enum { TRACE_CLOSERS_MAX = 16, TRACE_CLOSERS_WAITING = 256 };

/** A trace that waits to be closed. */
struct closing_trace {
    struct trace *trace;
    struct ttd_end end;
    bool is_requested; /* a lookup of its names was started */
};

struct trace_closers {
    struct symbolize_cache *names; /* shared by all traces; may be NULL */
    pid_t pids[TRACE_CLOSERS_MAX];
    size_t count;
    /** Waiting traces: a ring buffer, the oldest at `first`. */
    struct closing_trace waiting[TRACE_CLOSERS_WAITING];
    size_t first, waiting_count;
    unsigned failures;    /* incomplete traces */
    unsigned unwritten;   /* of these, traces that have a file */
    int64_t requested_at; /* time of the last lookup, by symbolize_milliseconds() */
};

void trace_closers_init(struct trace_closers *closers);
void trace_closers_free(struct trace_closers *closers);

/** Starts looking up the names that a trace needs so far, so that it can be closed sooner. */
void trace_closers_prepare(struct trace_closers *closers, struct trace *trace);

/** Whether there is room for another trace. Waits a moment if there is none. */
bool trace_closers_have_room(struct trace_closers *closers);

/** Takes over a trace; there must be room for it: closes it later, and releases it. */
void trace_closers_add(struct trace_closers *closers, struct trace *trace,
                       const struct ttd_end *end);

/** Tries to close the oldest waiting trace. Returns false if it must wait, or there is none. */
bool trace_closers_step(struct trace_closers *closers);

/**
 * Waits until all traces are closed. If `*interrupts` changes, closes them without the names that
 * are missing.
 */
void trace_closers_wait(struct trace_closers *closers, const volatile sig_atomic_t *interrupts);

#endif
