/* SPDX-License-Identifier: MIT */
/* What a trace whose file could not be written to its end has in it. */
#ifndef TTD_COLLECT_TRACE_WRITTEN_H
#define TTD_COLLECT_TRACE_WRITTEN_H

#include "trace.h"

/* Counts the events in the file of a trace that has failed. The trace then has these counts, and
 * all other events are lost. Calls `tick` now and then: it may take a while. */
void written_count(struct trace *trace, void (*tick)(void *context), void *context);

#endif
