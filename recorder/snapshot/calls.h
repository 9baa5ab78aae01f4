/* SPDX-License-Identifier: MIT */
/** Callbacks of a snapshot: its caller knows the process, and writes the trace. */
#ifndef RECORDER_SNAPSHOT_CALLS_H
#define RECORDER_SNAPSHOT_CALLS_H

#include "channel.h"
#include "snapshot/layout/process_layout.h"

/* The frames of a stack. */

enum { STACK_FRAMES = SNAPSHOT_FRAMES /* as many as of a thread that waits */ };

/** Innermost first: where each goes on, as in stacks of calls. */
struct stack_frames {
    size_t count;
    uint64_t pcs[STACK_FRAMES];
    uint64_t cfas[STACK_FRAMES]; /* canonical frame addresses; 0 where it is not known */
};

/** Those that return a bool return false to give up. */
struct snapshot_calls {
    /** Is called once the threads are stopped: collects their published records, and gives the
     * facts known about the process by then. */
    bool (*settle)(void *context, struct snapshot_subject *subject);
    /** Return the trace's id of a thread and of a text, or TTD_NONE. */
    ttd_id (*thread)(void *context, uint32_t tid);
    ttd_id (*text)(void *context, const char *text);
    /** Write parts of the snapshot. */
    bool (*regions)(void *context, const struct ttd_regions *regions);
    bool (*references)(void *context, const struct ttd_reference *references, size_t count);
    bool (*classes)(void *context, const struct ttd_classes *classes);
    bool (*headers)(void *context, const struct ttd_block_headers *headers);
    /** Writes the frames of a thread's stack. */
    bool (*frames)(void *context, uint32_t tid, const struct stack_frames *frames);
    /** Gets the number of threads whose stacks there was no time to follow. */
    void (*frames_missing)(void *context, size_t threads);
    /** Gets each word of a module's data, or thread-local storage, that is a reference. */
    void (*variable)(void *context, const struct region *region, uint64_t offset);
    /** Shows, every few milliseconds, that the collector is alive. */
    void (*tick)(void *context);
    /** Collects the records that the process publishes while it goes on, and the snapshot is not
     * done yet. */
    void (*follow)(void *context);
    void *context;
};

#endif
