/* SPDX-License-Identifier: MIT */
#include "collect/process/origin.h"
#include "collect/collector.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collect/process/processes.h"
#include "collect/trace/live_sizes.h"
#include "messages.h"

static void upkeep_answer_status(const struct process *process, struct control_answer *answer)
{
    const struct trace *trace = process->trace;
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text,
             "'%s': %" PRIu64 " events (%" PRIu64 " allocations, %" PRIu64 " frees), %" PRIu64
             " lost, %zu thread%s%s",
             trace->path, trace->events, trace->acquisitions, trace->releases, trace->lost,
             process->thread_count, process->thread_count == 1 ? "" : "s",
             trace_is_stopped(trace) ? ", full"
             : process->is_paused    ? ", paused"
                                     : "");
}

/* Refuses requests to a process whose trace is complete. */
static bool upkeep_requests_refuse_stopped(const struct process *process,
                                           struct control_answer *answer)
{
    if (trace_is_stopped(process->trace))
        snprintf(answer->text, sizeof answer->text,
                 "its recording is over: its trace has the size that was asked for");
    return trace_is_stopped(process->trace);
}

static void upkeep_answer_snapshot(struct collector *collector, struct process *process,
                                   struct control_answer *answer)
{
    struct ttd_snapshot snapshot = {.reason = TTD_SNAPSHOT_REQUESTED,
                                    .contents = collector->snapshots.contents};
    if (upkeep_requests_refuse_stopped(process, answer))
        return;
    enum take_result result = snapshots_take(collector, process, &snapshot);
    if (result != TAKE_DONE) {
        snprintf(answer->text, sizeof answer->text, "a snapshot could not be taken%s",
                 result == TAKE_DENIED ? ": the system does not permit it" : "");
        return;
    }
    trace_flush(process->trace); /* it may be read at once */
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text, "'%s': snapshot %" PRIu32, process->trace->path,
             process->trace->snapshots);
}

static void upkeep_answer_snapshots(struct process *process, const struct control_request *request,
                                    struct control_answer *answer)
{
    uint64_t every;
    if (upkeep_requests_refuse_stopped(process, answer))
        return;
    if (request->size != sizeof every) {
        snprintf(answer->text, sizeof answer->text, "no interval was given");
        return;
    }
    memcpy(&every, request->text, sizeof every);
    process->every = every;
    process->next_snapshot = 0;
    trace_flush(process->trace); /* those that were taken may be read at once */
    answer->result = CONTROL_DONE;
    if (every == 0)
        snprintf(answer->text, sizeof answer->text, "'%s': no more snapshots at intervals",
                 process->trace->path);
    else
        snprintf(answer->text, sizeof answer->text, "'%s': a snapshot every %g s",
                 process->trace->path, (double)every / 1e9);
}

/* Changes the stacks of the whole recording, and states it in the traces of all processes. */
static void upkeep_answer_stacks(struct collector *collector, const struct process *process,
                                 const struct control_request *request,
                                 struct control_answer *answer)
{
    struct channel *channel = collector->host.channel;
    uint64_t wanted;
    if (upkeep_requests_refuse_stopped(process, answer))
        return;
    if (request->size != sizeof wanted) {
        snprintf(answer->text, sizeof answer->text, "no stacks were named");
        return;
    }
    memcpy(&wanted, request->text, sizeof wanted);
    struct recording_options *recording = &collector->recording;
    uint32_t stackless = (uint32_t)wanted & CALLS_ALL, depth = (uint32_t)(wanted >> 32);
    bool is_changed = stackless != recording->stackless || depth != recording->stack_depth;
    recording->stackless = stackless;
    recording->stack_depth = depth;
    recording->flags |= CHANNEL_FEW_STACKS;
    atomic_store(&channel->stackless, stackless);
    atomic_store(&channel->stack_depth, depth);
    __atomic_store_n(&channel->flags, recording->flags, __ATOMIC_RELEASE);
    for (size_t i = 0; i < collector->processes.count && is_changed; i++)
        origin_stacks(collector->processes.items[i]->trace, stackless, depth);
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text, "'%s': other stacks are recorded from now on",
             process->trace->path);
}

static void upkeep_answer_mark(struct collector *collector, struct process *process,
                               const struct control_request *request, struct control_answer *answer)
{
    if (upkeep_requests_refuse_stopped(process, answer))
        return;
    if (request->size > sizeof request->text ||
        !user_events_mark(process, &collector->host, request->text, request->size)) {
        snprintf(answer->text, sizeof answer->text, "the mark could not be written");
        return;
    }
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text, "'%s': marked", process->trace->path);
}

static void upkeep_answer_pause(struct collector *collector, struct process *process,
                                bool is_paused, struct control_answer *answer)
{
    const char *state = is_paused ? "paused" : "resumed";
    if (upkeep_requests_refuse_stopped(process, answer))
        return;
    if (process->is_paused == is_paused) {
        snprintf(answer->text, sizeof answer->text, "its recording is %s",
                 is_paused ? "paused already" : "not paused");
        return;
    }
    if (!user_events_pause(process, &collector->host, is_paused)) {
        snprintf(answer->text, sizeof answer->text, "its recording could not be %s", state);
        return;
    }
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text, "'%s': %s", process->trace->path, state);
}

static void upkeep_answer_detach(struct collector *collector, const struct process *process,
                                 struct control_answer *answer)
{
    if (!collector->is_attached || process->pid != (uint32_t)collector->launched) {
        snprintf(answer->text, sizeof answer->text,
                 "it was started with the recorder, and cannot be without it");
        return;
    }
    collector->is_to_detach = true;
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text, "'%s': detached", process->trace->path);
}

/* Process id, events, acquisitions, releases, live blocks, lost calls, age in nanoseconds, whether
 * it is paused, live bytes, whether these are a lower bound (1) or unknown (2), why, a tab, and the
 * path of the trace. */
static void upkeep_answer_counts(const struct collector *collector, uint32_t index,
                                 struct control_answer *answer)
{
    if (index >= collector->processes.count) {
        answer->result = CONTROL_UNKNOWN;
        return;
    }
    const struct process *process = collector->processes.items[index];
    const struct trace *trace = process->trace;
    uint64_t ended = trace->releases + trace->superseded;
    uint64_t now = host_now(&collector->host);
    enum live_doubt doubt = trace->sizes ? trace->sizes->doubt : LIVE_UNKNOWN;
    answer->result = CONTROL_DONE;
    snprintf(answer->text, sizeof answer->text,
             "%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
             " %d %" PRIu64 " %d %s\t%s",
             process->pid, trace->events, trace->acquisitions, trace->releases,
             trace->acquisitions > ended ? trace->acquisitions - ended : 0, trace->lost,
             now > process->start ? now - process->start : 0, process->is_paused,
             trace->sizes ? trace->sizes->bytes : 0,
             doubt == LIVE_EXACT ? 0 : 1 + (doubt >= LIVE_UNKNOWN), live_sizes_reason(doubt),
             trace->path);
}

void requests_answer(void *context, const struct control_request *request,
                     struct control_answer *answer)
{
    struct collector *collector = context;
    if (request->command == CONTROL_COUNTS) {
        upkeep_answer_counts(collector, request->pid, answer);
        return;
    }
    struct process *process = processes_by_pid(&collector->processes, request->pid);
    if (!process) {
        answer->result = CONTROL_UNKNOWN;
        return;
    }
    switch ((enum control_command)request->command) {
    case CONTROL_STATUS:
        upkeep_answer_status(process, answer);
        break;
    case CONTROL_SNAPSHOT:
        upkeep_answer_snapshot(collector, process, answer);
        break;
    case CONTROL_SNAPSHOTS:
        upkeep_answer_snapshots(process, request, answer);
        break;
    case CONTROL_STACKS:
        upkeep_answer_stacks(collector, process, request, answer);
        break;
    case CONTROL_MARK:
        upkeep_answer_mark(collector, process, request, answer);
        break;
    case CONTROL_PAUSE:
    case CONTROL_RESUME:
        upkeep_answer_pause(collector, process, request->command == CONTROL_PAUSE, answer);
        break;
    case CONTROL_DETACH:
        upkeep_answer_detach(collector, process, answer);
        break;
    default:
        snprintf(answer->text, sizeof answer->text, "the recorder does not know this command");
        break;
    }
}

#define FLUSH_NS         UINT64_C(1000000000)
#define REAP_NS          UINT64_C(500000000)
#define CONTROL_NS       UINT64_C(20000000)
#define PREPARE_NS       UINT64_C(50000000)
#define PREPARE_AGAIN_NS UINT64_C(1000000000)
/* Names are written into one trace at a time: nothing is collected during those milliseconds. */
#define NAMES_NS      UINT64_C(10000000)
#define NAMES_EACH_NS UINT64_C(250000000)

/* Starts a lookup of the names that a process lacks. A process that has just begun waits: most end
 * soon. */
static void upkeep_prepare_names(struct collector *collector, struct process *process, uint64_t now)
{
    bool is_old = now > process->start && now - process->start >= PREPARE_NS;
    if (!process->trace->writer || !is_old)
        return;
    trace_closers_prepare(&collector->closers, process->trace);
    process->next_prepare = now + PREPARE_AGAIN_NS;
}

void upkeep_at_end(struct collector *collector, struct process *process)
{
    if (process->trace->modules.frame_count > process->trace->frames_prepared)
        upkeep_prepare_names(collector, process, host_now(&collector->host));
}

void upkeep_after_snapshot(struct collector *collector, struct process *process)
{
    if (process->trace->variables.count > 0)
        upkeep_prepare_names(collector, process, host_now(&collector->host));
}

/* Writes cached names into the next trace that is due. */
static void upkeep_write_names(struct collector *collector, uint64_t now)
{
    size_t count = collector->processes.count;
    for (size_t i = 0; i < count; i++) {
        size_t index = (collector->names_turn + i) % count;
        struct process *process = collector->processes.items[index];
        if (process->next_names > now)
            continue;
        process->next_names = now + NAMES_EACH_NS;
        trace_write_known_names(process->trace, collector->closers.names);
        collector->names_turn = index + 1;
        return;
    }
}

/* Says that calls are lost as soon as they are, and again when their number has doubled. */
static void upkeep_tell_losses(struct trace *trace)
{
    if (trace->lost == 0 || trace->lost < 2 * trace->lost_told)
        return;
    trace->lost_told = trace->lost;
    message("warning: '%s': %" PRIu64 " call%s lost so far", trace->path, trace->lost,
            trace->lost == 1 ? "" : "s");
}

void upkeep(struct collector *collector, uint64_t now)
{
    if (now >= collector->next_control) {
        control_step(&collector->control, now, requests_answer, collector);
        collector->next_control = now + CONTROL_NS;
    }
    if (now >= collector->next_prepare) {
        for (size_t i = 0; i < collector->processes.count; i++) {
            struct process *process = collector->processes.items[i];
            size_t count = process->trace->modules.frame_count;
            size_t prepared = process->trace->frames_prepared;
            /* At once when the number of its addresses has doubled since the last time, otherwise
             * once in a while if it has grown. */
            if (count > 2 * prepared || (count > prepared && now >= process->next_prepare))
                upkeep_prepare_names(collector, process, now);
        }
        collector->next_prepare = now + PREPARE_NS;
    }
    if (now >= collector->next_names) {
        upkeep_write_names(collector, now);
        collector->next_names = now + NAMES_NS;
    }
    if (now >= collector->next_flush) {
        for (size_t i = 0; i < collector->processes.count; i++) {
            user_events_memory(collector->processes.items[i], &collector->host);
            trace_flush(collector->processes.items[i]->trace);
            upkeep_tell_losses(collector->processes.items[i]->trace);
            host_tick(&collector->host); /* there may be thousands */
        }
        collector->next_flush = now + FLUSH_NS;
    }
    if (now >= collector->next_reap) {
        for (size_t i = 0; i < collector->processes.count; i++)
            process_reap_threads(collector->processes.items[i], &collector->host);
        collector->next_reap = now + REAP_NS;
    }
}
