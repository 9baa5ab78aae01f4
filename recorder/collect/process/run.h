/* SPDX-License-Identifier: MIT */
/*
 * Runs of usual calls, which nearly all records are: calls that acquire or release a block, have
 * returned, and belong to the fragment and the time of the record before. They are written
 * together, at a third of the cost.
 */
#ifndef RECORDER_COLLECT_PROCESS_RUN_H
#define RECORDER_COLLECT_PROCESS_RUN_H

#include "collect/process/processes.h"

/*
 * Writes the usual calls that come next in a thread, all of one sequence and all known to be
 * published. Returns how many: 0 if the next record is not one.
 */
size_t run_merge(struct process *process, struct thread_stream *thread);

#endif
