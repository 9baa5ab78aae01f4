/* SPDX-License-Identifier: MIT */
/* Removes the files that an earlier recording has left beside the trace that is replaced. */
#ifndef TTD_COLLECT_STALE_H
#define TTD_COLLECT_STALE_H

#include <stdbool.h>

#include <ttdtrace/model.h>

/* Whether the file is a trace; sets `old` to its description. Called before it is replaced. */
bool stale_look(const char *path, struct ttd_trace *old);

/*
 * Removes the traces, and indexes of such, of the child processes of that recording: regular files
 * of ours beside `path`, that have its name with the process id behind it, and are traces of that
 * process and of the same group. Nothing else is touched, whatever its name is.
 */
void stale_remove(const char *path, const struct ttd_trace *old);

#endif
