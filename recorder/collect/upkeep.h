/* SPDX-License-Identifier: MIT */
/* Periodic tasks of the collector: names, flushing, removal of ended threads. */
#ifndef RECORDER_COLLECT_UPKEEP_H
#define RECORDER_COLLECT_UPKEEP_H

#include <stdint.h>

#include "collect/collector.h"

/* Does the work that is due at `now`, a time of the channel's clock. */
void upkeep(struct collector *collector, uint64_t now);

/* Starts a lookup of the names that are missing in the trace of a process that asks for a snapshot,
 * since most of these are about to end. The names are found while its memory is searched. Does
 * nothing while there is another lookup, nor for a process that has just begun. */
void upkeep_at_end(struct collector *collector, struct process *process);

/* Likewise for the variables that the snapshot has found, while the process ends. */
void upkeep_after_snapshot(struct collector *collector, struct process *process);

/* Requests from outside: ttdrecord status PID, ttdrecord snapshot PID. */

/* Answers a request: a control_function, whose context is the collector. */
void requests_answer(void *context, const struct control_request *request,
                     struct control_answer *answer);

#endif
