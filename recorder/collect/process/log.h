/* SPDX-License-Identifier: MIT */
/* The log of a process: its modules, as they are loaded and unloaded. */
#ifndef RECORDER_COLLECT_PROCESS_LOG_H
#define RECORDER_COLLECT_PROCESS_LOG_H

#include "collect/process/process.h"

/* Writes the loads and unloads of modules up to `sequence`. */
void log_apply(struct process *process, struct host *host, uint64_t sequence);

/*
 * Whether the log may have new records. A record with an address in a module is published after the
 * load of the module, so the log is read only if some stream has been read since.
 */
static inline bool log_is_due(const struct process *process, const struct host *host)
{
    return process->has_log_next || process->log_looks != host->looks;
}

#endif
