/* SPDX-License-Identifier: MIT */
/* Writes losses: calls that are missing in a trace. */
#ifndef TTD_COLLECT_PROCESS_LOSSES_H
#define TTD_COLLECT_PROCESS_LOSSES_H

#include "process.h"

/*
 * Reports calls that a thread has lost since its counters were last read. The loss ends with the
 * newest fragment: any later stamp begins a fragment, or continues the newest.
 */
void losses_of_thread(struct process *process, struct thread_stream *thread,
                      const struct host *host);

/* Reports that the process makes calls which bypass the recorder, since some time after the last
 * look. */
void losses_of_process(struct process *process, struct host *host);

#endif
