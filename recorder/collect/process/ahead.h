/* SPDX-License-Identifier: MIT */
/* Looks ahead at records that are published but cannot be written yet, because their order is not
 * known. */
#ifndef RECORDER_COLLECT_PROCESS_AHEAD_H
#define RECORDER_COLLECT_PROCESS_AHEAD_H

#include "collect/process/process.h"

/* Adds the blocks that these records acquire to the heap pages of the process's trace, so that a
 * snapshot finds references to them. */
void ahead_add_blocks(const struct process *process, struct host *host);

#endif
