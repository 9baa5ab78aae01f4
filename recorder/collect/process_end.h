/* SPDX-License-Identifier: MIT */
/* The end of a recorded process: its exit status, and the last records of its trace. */
#ifndef RECORDER_COLLECT_PROCESS_END_H
#define RECORDER_COLLECT_PROCESS_END_H

#include "collect/collector.h"

/* Whether a process has ended, as far as processes_poll() or waitpid() has found out. */
bool process_end_is_due(struct collector *collector, const struct process *process);

/* Returns how and when a process ended. The reason is unknown if the system does not give it. */
struct ttd_end process_end_reason(const struct collector *collector, const struct process *process);

/* Writes the rest of the process at `index`, hands its trace on to be closed, and removes it. */
void process_end(struct collector *collector, size_t index, const struct ttd_end *end);

#endif
