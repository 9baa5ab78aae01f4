/* SPDX-License-Identifier: MIT */
/** The collector's side of a snapshot: gives the known facts about the process, and writes the
 * trace. Private to collect_snapshots.c and snapshot_calls.c, which are too long for one file. */
#ifndef RECORDER_COLLECT_SNAPSHOT_CALLS_H
#define RECORDER_COLLECT_SNAPSHOT_CALLS_H

#include "snapshot/take.h"
#include "collect/collector.h"
#include "collect/trace/reference_writer.h"

/** A snapshot that is being taken of a process. */
struct snapshot_taking {
    struct collector *collector;
    struct process *process;
    struct trace *trace;
    struct snapshot_request *asked; /* by a thread that waits; NULL if none does */
    bool has_answered;              /* the request; the thread may have asked anew since */
    uint64_t own_memory;
    struct borrowed_code borrowed;
    struct ttd_snapshot snapshot;
    struct snapshot_module *modules;
    struct reference_writer references; /* while the process is searched; it shares the trace */
};

/** Gives the snapshot its position, behind all that was published before it, and collects that.
 * `context` is a struct snapshot_taking. */
bool snapshot_settle(void *context, struct snapshot_subject *subject);

/** Returns the trace's id of a thread. */
ttd_id snapshot_thread(const struct snapshot_taking *taking, uint32_t tid);

struct snapshot_calls snapshot_calls_of(struct snapshot_taking *taking);

#endif
