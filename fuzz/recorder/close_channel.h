/* SPDX-License-Identifier: MIT */
/** Closing a channel. A collector's process ends with its channel, but a target opens many. */
#ifndef FUZZ_CLOSE_CHANNEL_H
#define FUZZ_CLOSE_CHANNEL_H

#include "collect/channel/host.h"

/** Releases the memory and the descriptors of a channel that host_open() has made. */
void close_channel(struct host *host);

#endif
