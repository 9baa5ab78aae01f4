/* SPDX-License-Identifier: MIT */
/* Which blocks the C and C++ runtimes keep, as told by a copy of the process (preload/runtime.c).
 */
#ifndef TTD_COLLECT_RUNTIME_H
#define TTD_COLLECT_RUNTIME_H

#include "host.h"
#include "trace.h"

/* Adds what the copy told of a process that has ended, and had `slot` and `pid`; a list that is cut
 * short where there was no copy, or it has not told all. One that `is_empty`, since it has made no
 * calls, has nothing to tell and makes no copy. */
void runtime_collect(struct trace *trace, struct host *host, uint32_t slot, uint32_t pid,
                     bool is_empty);

#endif
