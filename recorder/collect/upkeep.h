/* SPDX-License-Identifier: MIT */
/* Periodic tasks of the collector: names, flushing, removal of ended threads. */
#ifndef TTD_COLLECT_UPKEEP_H
#define TTD_COLLECT_UPKEEP_H

#include <stdint.h>

#include "collector.h"

/* Does what is due at `now`, a time of the channel's clock. */
void upkeep(struct collector *collector, uint64_t now);

/* Starts a lookup of the names that are missing in the trace of a process that is about to end.
 * They are found while its memory is searched. */
void upkeep_at_end(struct collector *collector, struct process *process);

#endif
