/* SPDX-License-Identifier: MIT */
/**
 * A thread that reads the memory of another process. The system may never end a read: memory may be
 * provided by a thread of the process itself (userfaultfd) or by a file server that does not
 * answer, and the list of mappings may be locked. So another thread waits for the reader, can let
 * the process go on meanwhile, and leaves the reader behind in the end. It knows nothing of memory:
 * all that reads files and memory of a process uses it.
 */
#ifndef RECORDER_SNAPSHOT_PROCESS_READER_H
#define RECORDER_SNAPSHOT_PROCESS_READER_H

#include <stdbool.h>
#include <stdint.h>

/** Times of a single read that make the process go on, and that make the reader be left behind:
 * less than a process at its end waits. */
#define READER_STALL_NS UINT64_C(1000000000)
#define READER_LEAVE_NS UINT64_C(3000000000)

/**
 * Calls `run(context)` in a reader, and waits for it. Calls `watch(context, stalled)` every few
 * milliseconds, if it is not NULL: `stalled` is the known number of nanoseconds of the reader in
 * the same read. Returns false if the reader was left behind in a read: it does nothing more, but
 * everything that it uses must stay. Without another thread `run` is called by this one.
 */
bool reader_run(void (*run)(void *context), void (*watch)(void *context, uint64_t stalled),
                void *context);

/** Has the thread that waits for this reader call a function, and waits for that. */
void reader_ask(void (*function)(void *context), void *context);

/** Enclose each system call of a reader that may not end. Nothing that others use may happen in
 * between. In other threads they do nothing. */
void reader_enter(void);
void reader_leave(void);

#endif
