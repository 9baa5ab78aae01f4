/* SPDX-License-Identifier: MIT */
/* Takes the dumps that processes ask for by ttdtrace/live_dump.h. */
#ifndef RECORDER_COLLECT_DUMPS_H
#define RECORDER_COLLECT_DUMPS_H

#include "collect/collector.h"

/* Takes, and answers, all dumps that were asked for. */
void dumps_step(struct collector *collector);

/* The same for one process. */
void dumps_take(struct collector *collector, struct process *process);

#endif
