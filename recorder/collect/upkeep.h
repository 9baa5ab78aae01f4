/* SPDX-License-Identifier: MIT */
/* The collector's timed work: names, flushing, threads that are gone. */
#ifndef TTD_COLLECT_UPKEEP_H
#define TTD_COLLECT_UPKEEP_H

#include <stdint.h>

#include "collector.h"

/* Does what is due at `now`, a time of the channel's clock. */
void upkeep(struct collector *collector, uint64_t now);

#endif
