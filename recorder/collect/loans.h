/* SPDX-License-Identifier: MIT */
/* Hands the channel over to processes that cannot open it: see struct loan. */
#ifndef RECORDER_COLLECT_LOANS_H
#define RECORDER_COLLECT_LOANS_H

#include "collect/channel/host.h"

/* The last known state of a loan, and its begin: all zero at first. */
struct loan_seen {
    uint32_t state;
    uint64_t since;
};

/* Answers the requests, and frees those whose processes have ended meanwhile. `seen` has an entry
 * for each loan. */
void loans_step(struct host *host, struct loan_seen *seen, uint64_t now);

#endif
