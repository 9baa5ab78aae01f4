/* SPDX-License-Identifier: MIT */
/* Takes snapshots of processes: those that they ask for, those at intervals, and others. */
#ifndef TTD_COLLECT_SNAPSHOTS_H
#define TTD_COLLECT_SNAPSHOTS_H

#include "../snapshot/take.h"
#include "collector.h"

/* Looks for requests of processes, and answers each. */
void snapshots_answer(struct collector *collector);

/* Takes the snapshots at intervals that are due. */
void snapshots_step(struct collector *collector, uint64_t now);

/*
 * Takes a snapshot of a process at once. `contents` is a sum of enum ttd_snapshot_contents. Returns
 * whether there is one, or why not.
 */
enum take_result snapshots_take(struct collector *collector, struct process *process,
                                enum ttd_snapshot_reason reason, uint32_t contents);

#endif
