/* SPDX-License-Identifier: MIT */
/* What the system knows of a recorded process. */
#ifndef TTD_COLLECT_ORIGIN_H
#define TTD_COLLECT_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "../channel.h"
#include "trace.h"

/* Writes the metadata that all traces of a recording have in common. */
void origin_describe(struct trace *trace);

/* Writes what the process image in a slot is; `command` instead of its own, unless that is NULL. */
void origin_image(struct trace *trace, const struct process_slot *slot, const char *command);

/* When a process began, in ticks since the system did; 0 if that is not known. */
uint64_t origin_start_time(uint32_t pid);

/* Whether the id that is found in shared memory cannot be that of a process which we record: there
 * is none such, or it began before the launched program did, at `start`, or it is ours. */
bool origin_is_impossible(uint32_t pid, uint64_t start);

/* Whether a process is there, and neither stopped nor ended. */
bool origin_is_running(uint32_t pid);

/*
 * The exit status, as from waitpid(), of a process that has ended and is not our child: from the
 * kernel's record of it as long as its parent has not waited for it, or from its pidfd (Linux
 * 6.15). False if it cannot be known.
 */
bool origin_exit_status(uint32_t pid, int pidfd, int *status);

#endif
