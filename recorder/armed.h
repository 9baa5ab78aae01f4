/* SPDX-License-Identifier: MIT */
/* Records a process from its first instruction on that was not started by this recorder. */
#ifndef RECORDER_ARMED_H
#define RECORDER_ARMED_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

/*
 * Records a process that this thread traces, and that is stopped before its first instruction:
 * see arm/arm.h. Lets go of it once it is armed, or cannot be; `is_suspended` as for arm_release().
 * Returns an exit status, after a message if the process could not be recorded: it is then as it
 * was.
 */
int armed_record(const struct options *options, uint32_t pid, bool is_suspended);

#endif
