/* SPDX-License-Identifier: MIT */
/* User events of a process: its own, from the live API, and those from outside of the program. */
#ifndef RECORDER_COLLECT_PROCESS_USER_EVENTS_H
#define RECORDER_COLLECT_PROCESS_USER_EVENTS_H

#include "collect/process/processes.h"

/* Writes the event of an OP_EVENT record: its operands, then `words` words of data. False if it is
 * invalid: the program has overwritten it. */
bool user_events_write(struct process *process, struct thread_stream *thread,
                       struct ttd_position position, const volatile uint64_t *operands,
                       unsigned words);

/* Writes the events from outside of the program with sequences up to `bound`. */
void user_events_write_outside(struct process *process, uint64_t bound);

/* Does the same, faster where there are none, as in most traces. */
static inline void user_events_reach(struct process *process, uint64_t bound)
{
    if (__builtin_expect(process->outside_count != 0, 0))
        user_events_write_outside(process, bound);
}

/* Marks the present moment with a text. False if it cannot be written. */
bool user_events_mark(struct process *process, struct host *host, const char *text, size_t size);

/* Notes how much memory the process has, heap or not, at the newest position. Writes nothing if the
 * system does not say, or before the first call. */
void user_events_memory(struct process *process, struct host *host);

/* Pauses or resumes recording of all threads of the process. Returns false if recording is in that
 * state already, or if the event cannot be written. */
bool user_events_pause(struct process *process, struct host *host, bool is_paused);

/* Suspends all threads of a process for good: its trace is complete. */
void user_events_stop(struct process *process, struct host *host);

#endif
