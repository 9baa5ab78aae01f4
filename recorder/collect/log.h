/* SPDX-License-Identifier: MIT */
/* A process's log of modules. */
#ifndef TTD_COLLECT_LOG_H
#define TTD_COLLECT_LOG_H

#include "process.h"

/* Applies what the log says of modules that came and went until `sequence`. */
void log_apply(struct process *process, struct host *host, uint64_t sequence);

/*
 * Whether there may be something to apply. What has an address in a module is published after that
 * module's load, so nothing is missed by looking only when something else was looked at.
 */
static inline bool log_is_due(const struct process *process, const struct host *host)
{
    return process->has_log_next || process->log_looks != host->looks;
}

#endif
