/* SPDX-License-Identifier: MIT */
/* Closing traces. Names take a while: other processes add them, while we go on collecting. */
#ifndef TTD_COLLECT_FINISHERS_H
#define TTD_COLLECT_FINISHERS_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

#include "trace.h"

enum { FINISHERS_AT_ONCE = 16 };

struct finishers {
    struct symbolize_cache *names; /* shared by all; NULL if there is none */
    pid_t pids[FINISHERS_AT_ONCE];
    size_t count;
    unsigned failures; /* traces that are not whole */
};

void finishers_init(struct finishers *finishers);
void finishers_free(struct finishers *finishers);

/* Closes a trace, sooner or later, and releases it. */
void finishers_take(struct finishers *finishers, struct trace *trace, const ttd_end *end);

/*
 * Waits until all traces are closed. If `*interrupts` changes meanwhile, they are closed without
 * the names that are not found yet.
 */
void finishers_wait(struct finishers *finishers, const volatile sig_atomic_t *interrupts);

#endif
