/* SPDX-License-Identifier: MIT */
/* What the collector waits for once the launched program has ended. */
#ifndef RECORDER_COLLECT_WAITING_H
#define RECORDER_COLLECT_WAITING_H

#include "collect/collector.h"

/* Prints, once, which processes are waited for, if the launched program has ended a second ago. */
void waiting_tell(struct collector *collector, uint64_t now);

#endif
