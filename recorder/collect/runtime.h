/* SPDX-License-Identifier: MIT */
/* Which blocks the C and C++ runtimes keep, as told by a copy of the process (preload/runtime.c).
 */
#ifndef TTD_COLLECT_RUNTIME_H
#define TTD_COLLECT_RUNTIME_H

#include "host.h"
#include "trace.h"

/* Adds what the copy of a process that has ended told; `parent` was the process's slot. */
void runtime_collect(struct trace *trace, struct host *host, uint32_t parent);

#endif
