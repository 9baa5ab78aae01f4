/* SPDX-License-Identifier: MIT */
/* The blocks that a process had before the recorder was attached to it. */
#ifndef RECORDER_COLLECT_EARLIER_H
#define RECORDER_COLLECT_EARLIER_H

#include "attach/known_blocks.h"
#include "collect/trace/process_trace.h"

/*
 * Writes the blocks into the trace, which has no events yet: as allocations without a function, a
 * thread and a stack, from a position on that comes before all calls. `reason` says why there may
 * be more; NULL if these are all.
 */
void earlier_write(struct trace *trace, const struct known_blocks *blocks, const char *reason,
                   struct ttd_position position);

#endif
