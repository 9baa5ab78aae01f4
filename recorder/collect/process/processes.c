/* SPDX-License-Identifier: MIT */
#include "processes.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

void processes_free(struct processes *processes)
{
    free(processes->items);
    free(processes->polled);
}

struct process *processes_by_slot(const struct processes *processes, uint32_t slot)
{
    return slot <= CHANNEL_PROCESSES ? processes->by_slot[slot] : NULL;
}

struct process *processes_by_pid(const struct processes *processes, uint32_t pid)
{
    for (size_t i = 0; i < processes->count; i++)
        if (processes->items[i]->pid == pid)
            return processes->items[i];
    return NULL;
}

/* Whether a process is over that executed nothing: another one may have its id by now. */
static bool is_over(const struct process *process, struct host *host)
{
    struct pollfd event = {.fd = process->pidfd, .events = POLLIN};
    uint32_t notes = atomic_load(&channel_process(&host->view, process->slot)->notes);
    return (notes & NOTE_EXECUTES) == 0 && process->pidfd >= 0 && poll(&event, 1, 0) > 0;
}

struct process *processes_replaced(const struct processes *processes, struct host *host,
                                   const struct process_slot *slot)
{
    uint32_t pid = slot->pid;
    if (slot->flags & (PROCESS_FORKED | PROCESS_GUEST))
        return NULL;
    for (size_t i = 0; i < processes->count; i++)
        if (processes->items[i]->pid == pid && !process_has_image(processes->items[i]) &&
            !is_over(processes->items[i], host))
            return processes->items[i];
    return NULL;
}

struct process *processes_parent(const struct processes *processes, const struct process_slot *slot)
{
    if (slot->flags & PROCESS_FORKED) {
        struct process *parent = processes_by_slot(processes, slot->parent);
        return parent != NULL && parent->sequence == slot->parent_image ? parent : NULL;
    }
    return processes_by_pid(processes, slot->parent_pid);
}

bool processes_reserve(struct processes *processes)
{
    if (processes->count < processes->capacity)
        return true;
    size_t capacity = processes->capacity * 2 + 8;
    void *items = reallocarray(processes->items, capacity, sizeof *processes->items);
    if (items != NULL)
        processes->items = items;
    void *polled = reallocarray(processes->polled, capacity, sizeof *processes->polled);
    if (polled != NULL)
        processes->polled = polled;
    if (items == NULL || polled == NULL)
        return false;
    processes->capacity = capacity;
    return true;
}

void processes_add(struct processes *processes, struct process *process)
{
    processes->items[processes->count++] = process;
    processes->by_slot[process->slot] = process;
}

void processes_exec(struct processes *processes, struct process *process, struct host *host,
                    uint32_t slot)
{
    processes->by_slot[process->slot] = NULL;
    process_exec(process, host, slot);
    processes->by_slot[slot] = process;
}

struct process *processes_take(struct processes *processes, size_t index)
{
    struct process *process = processes->items[index];
    processes->by_slot[process->slot] = NULL;
    processes->items[index] = processes->items[--processes->count];
    return process;
}

void processes_poll(struct processes *processes)
{
    for (size_t i = 0; i < processes->count; i++)
        processes->polled[i] = (struct pollfd){.fd = processes->items[i]->pidfd, .events = POLLIN};
    poll(processes->polled, processes->count, 0);
    for (size_t i = 0; i < processes->count; i++) {
        struct process *process = processes->items[i];
        if (process->pidfd < 0) /* it was gone when we first looked, or there are no descriptors */
            process->is_gone = kill((pid_t)process->pid, 0) < 0 && errno == ESRCH;
        else
            process->is_gone = processes->polled[i].revents != 0;
    }
}
