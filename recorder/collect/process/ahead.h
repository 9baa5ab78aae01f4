/* SPDX-License-Identifier: MIT */
/* Looks at records that are published, but cannot be written yet, since their order is not known.
 */
#ifndef TTD_COLLECT_PROCESS_AHEAD_H
#define TTD_COLLECT_PROCESS_AHEAD_H

#include "process.h"

/* Adds the blocks that such records acquire to the pages of the process's trace. */
void ahead_add_blocks(const struct process *process, struct host *host);

#endif
