/* SPDX-License-Identifier: MIT */
#include "collector.h"

#include <sys/wait.h>

#include "../channel_pool.h"
#include "launched.h"
#include "messages.h"
#include "origin.h"
#include "runtime.h"
#include "upkeep.h"

enum { SLEEP_BUSY_MS = 1, SLEEP_IDLE_MS = 10, IDLE_ROUNDS = 20, UNHELD_LOOKS = 10 };

bool collector_open(struct collector *collector, const char *output, struct ttd_error *error)
{
    group_init(&collector->group, output);
    finishers_init(&collector->finishers);
    messages_share(); /* but not with the helper that reads what nobody trusts */
    collector->first = group_open(&collector->group, &collector->host, collector->launched, error);
    return collector->first != NULL;
}

/* NULL without memory. */
static struct trace *open_child_trace(struct collector *collector, const struct process_slot *slot)
{
    const struct process *parent = processes_parent(&collector->processes, slot);
    return group_open_child(&collector->group, &collector->host, slot,
                            parent != NULL ? parent->trace : NULL);
}

/* There is no memory to record a process. Its slot is not free: it may still write. */
static void refuse(struct collector *collector, struct process_slot *slot, struct trace *trace)
{
    if (trace != NULL)
        trace_discard(trace);
    atomic_fetch_add(&collector->host.channel->refused, 1);
    atomic_store_explicit(&slot->state, SLOT_REFUSED, memory_order_release);
}

static void add_process(struct collector *collector, uint32_t index)
{
    struct process_slot *slot = channel_process(&collector->host.view, index);
    struct process_slot claim = *slot; /* the program may change it meanwhile */
    bool is_own = claim.pid == (uint32_t)collector->launched;
    bool launched = collector->first != NULL && is_own;
    if (!is_own && origin_is_impossible(claim.pid, collector->launched_start)) {
        refuse(collector, slot, NULL);
        return;
    }
    struct trace *trace = launched ? collector->first : open_child_trace(collector, &claim);
    struct process *process = NULL;
    if (trace != NULL && processes_reserve(&collector->processes))
        process = process_new(index, &claim, trace);
    if (process == NULL) {
        collector->first = launched ? NULL : collector->first;
        refuse(collector, slot, trace);
        return;
    }
    processes_add(&collector->processes, process);
    process->start = launched ? 0 : claim.clock;
    process->is_launched = launched;
    if (launched) {
        collector->first = NULL;
        collector->first_attached = true;
    } else {
        collector->children += trace->writer != NULL;
    }
    origin_describe(trace);
    if (launched)
        origin_image(trace, &claim, collector->command);
}

static bool has_exited(struct collector *collector, const struct process *process)
{
    if (process->pid != (uint32_t)collector->launched)
        return process->is_gone;
    launched_reap(collector);
    return collector->launched_done;
}

static struct ttd_end end_of(const struct collector *collector, const struct process *process)
{
    struct ttd_end end = {.reason = TTD_END_REASON_UNKNOWN};
    int status = 0;
    end.wall_time = atomic_load_explicit(&collector->host.channel->clock, memory_order_relaxed);
    if (process->pid == (uint32_t)collector->launched && collector->launched_done)
        status = collector->launched_status;
    else if (!origin_exit_status(process->pid, process->pidfd, &status))
        return end;
    end.reason = WIFSIGNALED(status) ? TTD_END_REASON_SIGNALED : TTD_END_REASON_EXITED;
    end.code = (uint32_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return end;
}

/* The last program that it executed did not record, but the heap before that is gone. */
static void leave_image(struct collector *collector, struct process *process)
{
    uint64_t newest = atomic_load(&collector->host.channel->sequence);
    struct ttd_position position = {newest < TTD_SEQUENCE_MAX ? newest + 1 : newest, 0};
    trace_unload_all(process->trace, position);
    trace_new_heap(process->trace, position, TTD_NONE);
    trace_metadata(process->trace, "unrecorded", "a program that was executed");
    trace_loss(process->trace, TTD_LOSS_NOT_RECORDING, TTD_NONE, TTD_UNKNOWN, process->trace->last,
               ttd_position_max());
    collector->images_left++;
}

static void end_process(struct collector *collector, size_t index, const struct ttd_end *end)
{
    struct process *process = processes_take(&collector->processes, index);
    uint32_t notes = atomic_load(&channel_process(&collector->host.view, process->slot)->notes);
    if (process->is_launched)
        collector->notes |= notes;
    else
        collector->foreign_mallocs += (notes & NOTE_FOREIGN_MALLOC) != 0;
    uint32_t slot = process->slot;
    /* Of a child only now: a shell's is mostly a copy of the shell at first. */
    if (!process->is_launched) {
        origin_image(process->trace, channel_process(&collector->host.view, slot), NULL);
        group_name_child(channel_process(&collector->host.view, slot), process->trace);
    }
    bool executed = notes & NOTE_EXECUTES;
    process_drain(process, &collector->host);
    if (executed)
        leave_image(collector, process);
    runtime_collect(process->trace, &collector->host, slot, process->pid,
                    process_is_empty(process));
    struct ttd_end own = *end;
    own.wall_time = process_time(process, end->wall_time);
    collector->events += process->trace->events;
    collector->acquisitions += process->trace->acquisitions;
    collector->releases += process->trace->releases;
    collector->lost += process->trace->lost;
    while (!finishers_have_room(&collector->finishers))
        host_tick(&collector->host);
    finishers_take(&collector->finishers, process->trace, &own);
    process_free(process);
}

/* Looks for new threads. False when one is just coming: what it publishes is not known yet. */
static bool find_threads(struct collector *collector)
{
    bool complete = true;
    uint32_t used = channel_used(&collector->host.channel->free_threads, CHANNEL_THREADS);
    for (uint32_t index = 1; index <= used; index++) {
        const struct thread_slot *slot = channel_thread(&collector->host.view, index);
        if (slot == NULL)
            continue;
        uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
        if ((state & SLOT_STATE) != SLOT_CLAIMED && (state & SLOT_STATE) != SLOT_READY)
            continue;
        struct process *process = processes_by_slot(&collector->processes, state >> SLOT_PROCESS);
        if (process == NULL)
            continue;
        if ((state & SLOT_STATE) == SLOT_CLAIMED ||
            !process_add_thread(process, &collector->host, index))
            complete = false;
    }
    return complete;
}

/* The old image's threads are gone, but what they published may not have been looked at yet. */
static void exec_process(struct collector *collector, struct process *process, uint32_t index)
{
    find_threads(collector);
    processes_exec(&collector->processes, process, &collector->host, index);
}

/* The oldest process slot that is not known yet; CHANNEL_NONE if all are. */
static uint32_t oldest_unknown(struct collector *collector)
{
    uint32_t oldest = CHANNEL_NONE;
    uint64_t sequence = UINT64_MAX;
    uint32_t used = channel_used(&collector->host.channel->free_processes, CHANNEL_PROCESSES);
    for (uint32_t index = 1; index <= used; index++) {
        const struct process_slot *slot = channel_process(&collector->host.view, index);
        if (slot == NULL ||
            atomic_load_explicit(&slot->state, memory_order_acquire) != SLOT_READY ||
            slot->sequence >= sequence || processes_by_slot(&collector->processes, index) != NULL)
            continue;
        oldest = index;
        sequence = slot->sequence;
    }
    return oldest;
}

/* Looks for new processes: really new ones, or new images of known ones, in their order. What an
 * emulator runs is a process of its own, with the same id. */
static void find_processes(struct collector *collector)
{
    uint32_t index;
    for (int i = 0; i < CHANNEL_PROCESSES; i++) {
        if ((index = oldest_unknown(collector)) == CHANNEL_NONE)
            return;
        uint32_t pid = channel_process(&collector->host.view, index)->pid;
        struct process *known = processes_replaced(&collector->processes, pid);
        if (known != NULL)
            exec_process(collector, known, index);
        else
            add_process(collector, index);
    }
}

/* Ends the processes that have exited, once all is known that they were. */
static void reap_processes(struct collector *collector)
{
    bool looked = false;
    processes_poll(&collector->processes);
    for (size_t i = 0; i < collector->processes.count; i++) {
        struct process *process = collector->processes.items[i];
        if (process->exited || !has_exited(collector, process))
            continue;
        process->exited = true;
        process->end = end_of(collector, process);
        looked = true;
    }
    if (!looked)
        return;
    find_processes(collector);
    find_threads(collector);
    for (size_t i = collector->processes.count; i-- > 0;)
        if (collector->processes.items[i]->exited)
            end_process(collector, i, &collector->processes.items[i]->end);
}

/* One round: how many records were written. */
static size_t collect(struct collector *collector)
{
    struct host *host = &collector->host;
    size_t taken = 0;
    uint64_t bound = atomic_load(&host->channel->sequence);
    host_barrier(host);
    uint32_t attention = atomic_load(&host->channel->attention);
    if (attention != collector->attention) {
        find_processes(collector);
        if (find_threads(collector))
            collector->attention = attention;
        else
            return 0;
    }
    for (size_t i = 0; i < collector->processes.count; i++) {
        struct process *process = collector->processes.items[i];
        uint64_t pending = process_pending(process);
        taken += process_merge(process, host, pending < bound ? pending : bound);
    }
    return taken;
}

static void detach_all(struct collector *collector)
{
    struct ttd_end end = {.reason = TTD_END_REASON_DETACHED};
    host_stop(&collector->host);
    end.wall_time = host_tick(&collector->host);
    while (collector->processes.count > 0)
        end_process(collector, collector->processes.count - 1, &end);
}

/*
 * Whether a process may begin to record that has not done so yet, such as a daemon that was forked
 * and has not allocated anything. One that executes another program has the channel no more, and
 * not again before that starts: so it is looked once more.
 */
static bool is_awaited(struct collector *collector)
{
    if (collector->host.channel->flags & CHANNEL_NO_CHILDREN)
        return false;
    bool is_held = host_is_held(&collector->host);
    collector->unheld_looks = is_held ? 0 : collector->unheld_looks + 1;
    collector->was_held |= is_held;
    return is_held || (collector->was_held && collector->unheld_looks < UNHELD_LOOKS);
}

void collector_run(struct collector *collector, const volatile sig_atomic_t *detach)
{
    unsigned idle = 0;
    collector->launched_start = origin_start_time((uint32_t)collector->launched);
    while (!*detach) {
        uint64_t now = host_tick(&collector->host);
        uint32_t attention = atomic_load(&collector->host.channel->attention);
        size_t taken = collect(collector);
        upkeep(collector, now);
        launched_reap(collector); /* also when it was never attached */
        reap_processes(collector);
        bool finishes = finishers_step(&collector->finishers);
        if (collector->launched_done && collector->processes.count == 0 && !is_awaited(collector))
            break;
        idle = taken != 0 || finishes ? 0 : idle + 1;
        if (idle > 0)
            launched_follow_stop(collector);
        host_sleep(&collector->host, attention, idle < IDLE_ROUNDS ? SLEEP_BUSY_MS : SLEEP_IDLE_MS);
    }
    collector->left_alone = host_is_held(&collector->host);
    detach_all(collector);
    finishers_wait(&collector->finishers, detach);
}

void collector_close(struct collector *collector)
{
    if (collector->first != NULL)
        trace_discard(collector->first);
    finishers_free(&collector->finishers);
    processes_free(&collector->processes);
    group_free(&collector->group);
}
