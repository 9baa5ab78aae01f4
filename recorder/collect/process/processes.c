/* SPDX-License-Identifier: MIT */
#include "collect/process/processes.h"

#include <stdlib.h>

#include "collect/process/origin.h"

/* Processes without a pidfd that are looked at each time. It takes some microseconds for each. */
enum { LOOKS = 32 };

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
    if ((atomic_load(&channel_process(&host->view, process->slot)->notes) & NOTE_EXECUTES) != 0)
        return false;
    return process->pidfd >= 0 ? poll(&event, 1, 0) > 0
                               : origin_is_over(process->pid, process->start_time);
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

/* Looks at some of the processes that have no pidfd, and goes on behind them the next time. */
static void processes_look(struct processes *processes)
{
    unsigned looks = 0;
    for (size_t i = 0; i < processes->count && looks < LOOKS; i++) {
        struct process *process = processes->items[processes->looked_at++ % processes->count];
        if (process->pidfd >= 0)
            continue;
        process->is_gone = origin_is_over(process->pid, process->start_time);
        looks++;
    }
}

void processes_poll(struct processes *processes)
{
    nfds_t count = 0;
    for (size_t i = 0; i < processes->count; i++)
        if (processes->items[i]->pidfd >= 0)
            processes->polled[count++] =
                (struct pollfd){.fd = processes->items[i]->pidfd, .events = POLLIN};
    poll(processes->polled, count, 0);
    if (count < processes->count)
        processes_look(processes);
    for (size_t i = processes->count; i-- > 0;)
        if (processes->items[i]->pidfd >= 0)
            processes->items[i]->is_gone = processes->polled[--count].revents != 0;
}
