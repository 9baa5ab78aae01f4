/* SPDX-License-Identifier: MIT */
/* The records about a thread that waits for a snapshot: its frames, the signal of which it dies. */
#ifndef RECORDER_COLLECT_WAITING_THREAD_H
#define RECORDER_COLLECT_WAITING_THREAD_H

#include "channel.h"
#include "collect/process/process.h"

/* Writes the addresses of the thread's frames. `request` is a private copy of the request in shared
 * memory. Returns false if the trace has failed. */
bool waiting_thread_frames(struct trace *trace, const struct ttd_snapshot *snapshot,
                           const struct snapshot_request *request);

/* Writes the fatal signal. `snapshot` is NULL if none was taken, `request` as above. Returns false
 * if the signal cannot be written. */
bool waiting_thread_signal(struct process *process, struct host *host,
                           const struct ttd_snapshot *snapshot,
                           const struct snapshot_request *request);

#endif
