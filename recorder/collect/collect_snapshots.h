/* SPDX-License-Identifier: MIT */
/* Takes snapshots of processes: those that they ask for, those at intervals, and others. */
#ifndef RECORDER_COLLECT_COLLECT_SNAPSHOTS_H
#define RECORDER_COLLECT_COLLECT_SNAPSHOTS_H

#include "snapshot/take.h"
#include "collect/collector.h"

/* Looks for requests of processes, and answers each. */
void snapshots_answer(struct collector *collector);

/* Takes the snapshots at intervals that are due. */
void snapshots_step(struct collector *collector, uint64_t now);

/*
 * Takes a snapshot of a process at once. `snapshot` has its contents, its reason and its thread.
 * Returns whether there is one, or why not.
 */
enum take_result snapshots_take(struct collector *collector, struct process *process,
                                const struct ttd_snapshot *snapshot);

/* Makes sure that a trace has a place for contents of memory. Returns false if memory ran out. */
bool snapshots_have_store(struct trace *trace);

/* Counts a snapshot that is missing, unless that is because its process or its trace has ended. */
void snapshots_note_missing(struct collector *collector, const struct process *process,
                            enum take_result result);

/* Takes the snapshot before the recorder lets go of the launched process, which would be taken at
 * its end otherwise. */
void snapshots_take_last(struct collector *collector);

#endif
