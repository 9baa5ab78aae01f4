/* SPDX-License-Identifier: MIT */
/**
 * A copy of a process that is held: made as by fork, so that it shares all pages until one is
 * written, never runs, and is read while the process goes on.
 *
 * The process does not notice. The copy runs no handler of a fork, sends no signal when it ends,
 * and only a wait for children of any kind (__WALL) would see it while it is there. It shares the
 * descriptors, so a descriptor that the process closes is closed. It is stopped from the begin and
 * dies with the tracer; if the system runs out of memory, it dies first.
 */
#ifndef RECORDER_SNAPSHOT_STOP_COPY_H
#define RECORDER_SNAPSHOT_STOP_COPY_H

#include "snapshot/stop/borrow.h"
#include "snapshot/process_memory.h"

/** State of a process that lasts from one snapshot to the next. Zeroed at first. */
struct copy_history {
    uint32_t dead;  /* an ended copy that the process has not waited for, by its own count; or 0 */
    bool is_barred; /* a thread did not come back in time once: no more copies */
};

struct copy {
    uint32_t pid;   /* 0 if there is none */
    uint32_t inner; /* as the process itself would see it */
};

/** Smallest resident memory that is copied in less time than it is read. */
#define COPY_MIN (UINT64_C(64) << 20)

/** Ranges that a copy does not have as they are in the process, except those that are shared. */
struct copy_gaps {
    struct memory_span *items;
    size_t count, capacity;
};

/** Finds out, before the process is held, whether it is to be copied: it is large, and it reads no
 * files past the system's cache, into pages that a copy would take away. */
bool copy_is_due(uint32_t pid, uint64_t least, struct copy_gaps *gaps);
void copy_gaps_free(struct copy_gaps *gaps);

/** Makes a copy of a process whose threads are all stopped. Returns false if there is none;
 * `are_stopped` is false then if a thread could not be put back in time, and goes on. */
bool copy_make(struct copy *copy, struct threads *threads, const struct borrowed_code *code,
               struct copy_history *history);

/** Waits for an ended copy, if there is one, as its parent, so that nothing of it is left: in a
 * stopped thread that can be made to call. */
void copy_bury(struct threads *threads, const struct borrowed_code *code,
               struct copy_history *history);

/** Ends a copy, if there is one, while the threads are still stopped. */
void copy_drop(struct copy *copy, struct threads *threads, const struct borrowed_code *code,
               struct copy_history *history);

/** Ends the copy, if there is one; for that, up to three threads of the process stop once more for
 * a moment. Returns for how long the process stood still, in nanoseconds: 0 if it has more threads.
 */
uint64_t copy_end(struct copy *copy, const struct borrowed_code *code, struct copy_history *history,
                  uint32_t pid, uint32_t child, struct interrupted_calls *interrupted);

#endif
