/* SPDX-License-Identifier: MIT */
/* The blocks that the C and C++ runtimes keep, as found by a copy of the process: see
 * preload/end/runtime.c. */
#ifndef RECORDER_COLLECT_PROCESS_RUNTIME_H
#define RECORDER_COLLECT_PROCESS_RUNTIME_H

#include "collect/channel/host.h"
#include "collect/trace/trace.h"

/*
 * Writes the list of runtime blocks of an ended process, which had `slot` and `pid`. The list is
 * marked incomplete if there was no copy, or it did not finish. A process that made no calls
 * (`is_empty`) makes no copy, and has no such blocks.
 */
void runtime_collect(struct trace *trace, struct host *host, uint32_t slot, uint32_t pid,
                     bool is_empty);

#endif
