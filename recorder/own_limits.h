/* SPDX-License-Identifier: MIT */
/* Limits of the recorder's own process. */
#ifndef RECORDER_OWN_LIMITS_H
#define RECORDER_OWN_LIMITS_H

#include "collect/channel/host.h"

/* Keeps freed memory for the next trace. */
void limits_keep_memory(void);

/* Raises a limit as far as the system permits. */
void limits_raise(int resource);

/* Opens the channel in the memory file `memfd`, or in a new one if that is -1. Returns 0 or an
 * errno value. */
int limits_open_channel(struct host *host, int memfd, uint32_t flags);

#endif
