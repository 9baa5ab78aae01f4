/* SPDX-License-Identifier: MIT */
/* Writes losses: calls that are missing in a trace. */
#ifndef RECORDER_COLLECT_PROCESS_LOSSES_H
#define RECORDER_COLLECT_PROCESS_LOSSES_H

#include "collect/process/process.h"

/*
 * Reports calls that a thread has lost since its counters were last read. The loss ends with the
 * newest fragment: any later stamp begins a fragment, or continues the newest.
 */
void losses_of_thread(struct process *process, struct thread_stream *thread,
                      const struct host *host);

/*
 * Notes, at an event that begins or ends an island of the thread, whether the thread is suspended
 * from there on. If it was suspended before, reports the calls that it did not record. `skipped` is
 * an upper bound of their number, because it includes calls within calls.
 */
void losses_of_gap(struct process *process, struct thread_stream *thread, bool is_off,
                   struct ttd_position position, uint64_t skipped);

/* Reports the calls that a thread did not record between its last suspension and its end. */
void losses_of_last_gap(struct process *process, struct thread_stream *thread,
                        const struct host *host);

/* Reports that the process makes calls which bypass the recorder, since some time after the last
 * look. */
void losses_of_process(struct process *process, struct host *host);

#endif
