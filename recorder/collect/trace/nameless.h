/* SPDX-License-Identifier: MIT */
/* Modules of a trace whose addresses have no names because their files are gone. */
#ifndef RECORDER_COLLECT_TRACE_NAMELESS_H
#define RECORDER_COLLECT_TRACE_NAMELESS_H

#include "collect/trace/trace.h"

/* Says why such modules have no names: in the trace, and once for each path on stderr. Called when
 * all names are written. */
void nameless_note(struct trace *trace);

#endif
