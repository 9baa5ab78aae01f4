/* SPDX-License-Identifier: MIT */
/* What a trace whose file could not be written to its end has in it. */
#ifndef RECORDER_COLLECT_TRACE_WRITTEN_H
#define RECORDER_COLLECT_TRACE_WRITTEN_H

#include "collect/trace/trace.h"

/* Counts the events in the file of a trace that has failed. The trace then has these counts, and
 * all other events are lost. Calls `tick` now and then: it may take a while. */
void written_count(struct trace *trace, void (*tick)(void *context), void *context);

#endif
