/* SPDX-License-Identifier: MIT */
/* What the system knows of a recorded process. */
#ifndef TTD_COLLECT_ORIGIN_H
#define TTD_COLLECT_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "trace.h"

/* Writes the metadata; `command` is looked up if it is NULL. */
void origin_describe(struct trace *trace, uint32_t pid, const char *command);

/*
 * The exit status, as from waitpid(), of a process that is not our child, as long as its parent
 * has not waited for it. False if it cannot be known.
 */
bool origin_exit_status(uint32_t pid, int *status);

#endif
