/* SPDX-License-Identifier: MIT */
/* Reports calls that are not in the trace. */
#ifndef TTD_COLLECT_LOSSES_H
#define TTD_COLLECT_LOSSES_H

#include "process.h"

/*
 * Reports calls of a thread that were lost between the last look at its counters and this one. All
 * that is stamped from now on begins a fragment, or goes on with the newest one.
 */
void losses_of_thread(struct process *process, struct thread_stream *thread,
                      const struct host *host);

/* Reports calls that pass the recorder by, which began at some time after the last look. */
void losses_of_process(struct process *process, struct host *host);

#endif
