/* SPDX-License-Identifier: MIT */
#include "collect/process_end.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "collect/launched.h"
#include "collect/process/heaps.h"
#include "collect/process/origin.h"
#include "collect/process/runtime.h"
#include "collect/trace/written.h"

bool process_end_is_due(struct collector *collector, const struct process *process)
{
    if (process->pid != (uint32_t)collector->launched)
        return process->is_gone;
    launched_reap(collector);
    return collector->launched_has_ended;
}

struct ttd_end process_end_reason(const struct collector *collector, const struct process *process)
{
    struct ttd_end end = {.reason = TTD_END_REASON_UNKNOWN};
    int status = 0;
    end.wall_time = atomic_load_explicit(&collector->host.channel->clock, memory_order_relaxed);
    if (process->pid == launched_child(collector) && collector->launched_has_ended)
        status = collector->launched_status;
    else if (!origin_exit_status(process->pid, process->pidfd, &status))
        return end;
    end.reason = WIFSIGNALED(status) ? TTD_END_REASON_SIGNALED : TTD_END_REASON_EXITED;
    end.code = (uint32_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return end;
}

/* Ends the heap of a process whose last executed program was not recorded. */
static void leave_image(struct collector *collector, struct process *process)
{
    uint64_t newest = atomic_load(&collector->host.channel->sequence);
    struct ttd_position position = {newest < TTD_SEQUENCE_MAX ? newest + 1 : newest, 0};
    trace_unload_all(process->trace, position);
    heaps_end(process, position);
    trace_new_heap(process->trace, position, TTD_NONE);
    trace_metadata(process->trace, "unrecorded", "a program that was executed");
    trace_loss(process->trace, TTD_LOSS_NOT_RECORDING, TTD_NONE, TTD_UNKNOWN, process->trace->last,
               ttd_position_max());
    collector->images_left++;
    collector->has_left_launched = collector->has_left_launched || process->is_launched;
}

static void process_end_tick(void *host)
{
    host_tick(host);
}

/* Remembers the trace with the most blocks that were never released. A forked process may also have
 * released blocks of its parent's. */
static void note_live(struct collector *collector, const struct trace *trace)
{
    uint64_t ended = trace->releases + trace->superseded;
    uint64_t live = trace->acquisitions > ended ? trace->acquisitions - ended : 0;
    if (live <= collector->most_live)
        return;
    collector->most_live = live;
    free(collector->most_live_path);
    collector->most_live_path = strdup(trace->path);
}

/* Counts what has been written. What follows are the names and the end of the trace. */
static void count_events(struct collector *collector, struct trace *trace)
{
    trace_flush(trace);
    if (trace->writer == NULL && trace->created != NULL)
        written_count(trace, process_end_tick, &collector->host);
    collector->events += trace->events;
    collector->acquisitions += trace->acquisitions;
    collector->releases += trace->releases;
    collector->lost += trace->lost;
    note_live(collector, trace);
}

/* Takes over what the trace says of calls that are not recorded. */
static void count_unrecorded(struct collector *collector, const struct process *process)
{
    if (process->is_launched) {
        collector->notes |= process->notes;
        return;
    }
    collector->foreign_mallocs += (process->notes & NOTE_FOREIGN_MALLOC) != 0;
    collector->within += (process->notes & NOTE_WITHIN) != 0;
}

/* The launched program's trace states the refused children; traces that end after it, the later
 * ones. */
static bool states_refused(const struct collector *collector, const struct process *process)
{
    const struct process *launched =
        processes_by_pid(&collector->processes, (uint32_t)collector->launched);
    return process->is_launched ||
           (collector->launched_has_ended && (launched == NULL || !launched->is_launched));
}

/* States how many children were not recorded, as far as no trace has stated them yet. */
static void note_refused(struct collector *collector, struct trace *trace)
{
    char text[64];
    unsigned refused = atomic_load(&collector->host.channel->refused);
    unsigned more = refused - collector->refused_noted;
    if (more == 0)
        return;
    snprintf(text, sizeof text, "%u child process%s of the recording", more, more == 1 ? "" : "es");
    trace_metadata(trace, "unrecorded", text);
    collector->refused_noted = refused;
}

void process_end(struct collector *collector, size_t index, const struct ttd_end *end)
{
    struct process *process = processes_take(&collector->processes, index);
    uint32_t notes = atomic_load(&channel_process(&collector->host.view, process->slot)->notes);
    collector->snapshots_missing.late += (notes & NOTE_SNAPSHOT_LATE) != 0;
    uint32_t slot = process->slot;
    /* A child's command is read at its end: at first it is mostly that of the forking shell. */
    if (!process->is_launched) {
        origin_image(process->trace, channel_process(&collector->host.view, slot), NULL);
        group_name_child(channel_process(&collector->host.view, slot), process->trace);
    }
    bool executed = notes & NOTE_EXECUTES;
    process_drain(process, &collector->host);
    count_unrecorded(collector, process);
    dump_queue_refuse(&process->dumps);
    collector->snapshots_missing.failed += process->dumps.refused;
    if (executed)
        leave_image(collector, process);
    runtime_collect(process->trace, &collector->host, slot,
                    process->inner_pid != 0 ? process->inner_pid : process->pid,
                    process_is_empty(process));
    collector->full += trace_is_stopped(process->trace);
    trace_state_stop(process->trace);
    if (states_refused(collector, process))
        note_refused(collector, process->trace);
    struct ttd_end end_record = *end;
    end_record.wall_time = process_time(process, end->wall_time);
    count_events(collector, process->trace);
    collector->gaps += process->gaps;
    while (!trace_closers_have_room(&collector->closers))
        host_tick(&collector->host);
    trace_closers_add(&collector->closers, process->trace, &end_record);
    process_free(process);
}
