/* SPDX-License-Identifier: MIT */
/* Closing traces. Names take a while: other processes add them, while we go on collecting. */
#ifndef TTD_COLLECT_FINISHERS_H
#define TTD_COLLECT_FINISHERS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace.h"

/* Traces that wait have their files open: the program waits rather than that there be more. */
enum { FINISHERS_AT_ONCE = 16, FINISHERS_WAITING = 256 };

/* A trace that is to be closed. */
struct unfinished {
    struct trace *trace;
    struct ttd_end end;
    bool was_asked; /* its names were asked for */
};

struct finishers {
    struct symbolize_cache *names; /* shared by all; NULL if there is none */
    pid_t pids[FINISHERS_AT_ONCE];
    size_t count;
    /* Those for which there was no process: a ring, whose oldest is at `first`. */
    struct unfinished waiting[FINISHERS_WAITING];
    size_t first, waiting_count;
    unsigned failures; /* traces that are not whole */
    int64_t asked_at;  /* when names were last asked for, by milliseconds() */
};

void finishers_init(struct finishers *finishers);
void finishers_free(struct finishers *finishers);

/* Has the names looked up that a trace will need, as far as that is known: it can be closed sooner
 * then. */
void finishers_prepare(struct finishers *finishers, struct trace *trace);

/* Whether there is room for another trace that is to be closed. Waits a moment if there is none. */
bool finishers_have_room(struct finishers *finishers);

/* Closes a trace, for which there is room, sooner or later, and releases it. */
void finishers_take(struct finishers *finishers, struct trace *trace, const struct ttd_end *end);

/* Goes on with the oldest of the traces that wait. False if that is not possible yet, or there are
 * none. */
bool finishers_step(struct finishers *finishers);

/*
 * Waits until all traces are closed. If `*interrupts` changes meanwhile, they are closed without
 * the names that are not found yet.
 */
void finishers_wait(struct finishers *finishers, const volatile sig_atomic_t *interrupts);

#endif
