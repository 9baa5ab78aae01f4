/* SPDX-License-Identifier: MIT */
/* Removes children's traces that an earlier recording left beside the trace being replaced. */
#ifndef RECORDER_COLLECT_TRACE_STALE_H
#define RECORDER_COLLECT_TRACE_STALE_H

#include <stdbool.h>

#include <ttdtrace/model.h>

/* Returns whether the file is a trace of a group, and sets `old` to its description. Called before
 * it is replaced. */
bool stale_look(const char *path, struct ttd_trace *old);

/*
 * Removes the traces, and their indexes, of the child processes of that recording. A file is
 * removed only if it is a regular file of this user beside `path`, its name is that of `path`
 * followed by a process id, and it is a trace of that process and of the same group.
 */
void stale_remove(const char *path, const struct ttd_trace *old);

#endif
