/* SPDX-License-Identifier: MIT */
/* The set of processes being recorded. */
#ifndef RECORDER_COLLECT_PROCESS_PROCESSES_H
#define RECORDER_COLLECT_PROCESS_PROCESSES_H

#include <poll.h>

#include "collect/process/process.h"

/* All zero when empty. */
struct processes {
    struct process **items;
    struct pollfd *polled; /* scratch space, one for each process */
    size_t count, capacity;
    size_t looked_at; /* index, modulo the count, of the next process to look at without a pidfd */
    struct process *by_slot[CHANNEL_PROCESSES + 1];
};

/* Does not free the processes themselves. */
void processes_free(struct processes *processes);

/* Return the process, or NULL. `slot` may be any number. */
struct process *processes_by_slot(const struct processes *processes, uint32_t slot);
struct process *processes_by_pid(const struct processes *processes, uint32_t pid);
/* Returns the process whose image was replaced, by execution, by that of `slot`: see
   process_has_image(). NULL if there is none: a forked process and the guest of an emulator replace
   no image. */
struct process *processes_replaced(const struct processes *processes, struct host *host,
                                   const struct process_slot *slot);

/* Returns the process that forked or started that of `slot`; NULL if it is not recorded. */
struct process *processes_parent(const struct processes *processes,
                                 const struct process_slot *slot);

/* Makes room for one more. Returns false if memory ran out. */
bool processes_reserve(struct processes *processes);

/* Adds a process, for which room was made. */
void processes_add(struct processes *processes, struct process *process);

/* Gives a process another slot: see process_exec(). */
void processes_exec(struct processes *processes, struct process *process, struct host *host,
                    uint32_t slot);

/* Removes and returns the process at `index`. The last process takes its index. */
struct process *processes_take(struct processes *processes, size_t index);

/* Sets `is_gone` of the processes that have exited, with one system call for all, unless some have
 * no pidfd: these may have to wait for a few more calls. */
void processes_poll(struct processes *processes);

#endif
