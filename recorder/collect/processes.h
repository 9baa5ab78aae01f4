/* SPDX-License-Identifier: MIT */
/* All processes that are being recorded. */
#ifndef TTD_COLLECT_PROCESSES_H
#define TTD_COLLECT_PROCESSES_H

#include <poll.h>

#include "process.h"

/* All zero when empty. */
struct processes {
    struct process **items;
    struct pollfd *polled; /* scratch space, as large as the items */
    size_t count, capacity;
    struct process *by_slot[CHANNEL_PROCESSES + 1];
};

/* Does not free the processes themselves. */
void processes_free(struct processes *processes);

/* NULL if there is none. `slot` may be any number. */
struct process *processes_by_slot(const struct processes *processes, uint32_t slot);
struct process *processes_by_pid(const struct processes *processes, uint32_t pid);
/* One whose image has been replaced by another one: see process_has_image(). */
struct process *processes_replaced(const struct processes *processes, uint32_t pid);

/* The one that started the process of `slot`, or forked it; NULL if it is not recorded. */
const struct process *processes_parent(const struct processes *processes,
                                       const struct process_slot *slot);

/* Makes room for one more. False when there is no memory. */
bool processes_reserve(struct processes *processes);

/* Adds a process, for which room was made. */
void processes_add(struct processes *processes, struct process *process);

/* Gives a process another slot: see process_exec(). */
void processes_exec(struct processes *processes, struct process *process, struct host *host,
                    uint32_t slot);

/* Takes out the process at `index`; the last one comes there. */
struct process *processes_take(struct processes *processes, size_t index);

/* Asks the system, of all at once, which have exited: sets their `is_gone`. */
void processes_poll(struct processes *processes);

#endif
