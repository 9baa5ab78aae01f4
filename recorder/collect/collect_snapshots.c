/* SPDX-License-Identifier: MIT */
#include "collect/collector.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "collect/process/processes.h"
#include "collect/snapshot_calls.h"

/* So long a process that cannot be read may take to end. */
enum { ENDING_MS = 100 };

/* The records about a thread that waits for a snapshot: its frames, the signal that it dies of. */

static uint32_t collect_frame_count(const struct snapshot_request *request)
{
    return request->frame_count < SNAPSHOT_FRAMES ? request->frame_count : SNAPSHOT_FRAMES;
}

/* Writes the addresses of the thread's frames. `request` is a private copy of the request in shared
 * memory. Returns false if the trace has failed. */
static bool collect_waiting_thread_frames(struct trace *trace, const struct ttd_snapshot *snapshot,
                                          const struct snapshot_request *request)
{
    struct stack_frames frames = {.count = collect_frame_count(request)};
    memcpy(frames.pcs, request->frame_pcs, frames.count * sizeof *frames.pcs);
    memcpy(frames.cfas, request->frame_cfas, frames.count * sizeof *frames.cfas);
    return trace_frames(trace, snapshot->number, snapshot->thread, &frames);
}

/* Has the addresses named that the thread was releasing: an allocator aborts if one is no block. */
static void collect_name_released(struct process *process, uint32_t tid)
{
    for (size_t i = 0; i < process->thread_count; i++) {
        const struct thread_stream *thread = process->threads[i];
        if (thread->tid == tid && thread->has_held)
            trace_name_address(process->trace, thread->held.base_address);
    }
}

/* Writes the fatal signal. `snapshot` is NULL if none was taken, `request` as above. Returns false
 * if the signal cannot be written. */
static bool collect_waiting_thread_signal(struct process *process, struct host *host,
                                          const struct ttd_snapshot *snapshot,
                                          const struct snapshot_request *request)
{
    struct ttd_register registers[SNAPSHOT_REGISTERS];
    struct ttd_fatal_signal fatal = {
        .wall_time = process_time(process, host_tick(host)),
        .signal = request->signal,
        .code = request->code,
        .address = request->fault_address,
        .registers = registers,
    };
    if (snapshot) {
        fatal.position = snapshot->position;
        fatal.snapshot = snapshot->number;
    } else {
        fatal.position.sequence = atomic_fetch_add(&host->channel->sequence, 1) + 1;
    }
    if (request->signal > INT32_MAX || fatal.position.sequence > TTD_SEQUENCE_MAX)
        return false;
    for (uint32_t number = 0; number < SNAPSHOT_REGISTERS; number++)
        if ((request->registers_valid >> number & 1) != 0)
            registers[fatal.count++] =
                (struct ttd_register){.number = number, .value = request->registers[number]};
    trace_name_address(process->trace, request->fault_address);
    collect_name_released(process, request->tid);
    for (size_t i = 0; i < fatal.count; i++)
        trace_name_address(process->trace, registers[i].value);
    fatal.thread = process_thread_id(process, fatal.position, request->tid);
    fatal.stack =
        trace_whole_stack(process->trace, request->frame_pcs, collect_frame_count(request));
    return trace_fatal_signal(process->trace, &fatal);
}

/* Answers a request. Returns false if it was withdrawn. */
static bool snapshots_answer_request(struct snapshot_request *request, uint32_t state)
{
    uint32_t expected = SNAPSHOT_ASKED;
    if (!atomic_compare_exchange_strong(&request->state, &expected, state))
        return false;
    host_wake(&request->state);
    return true;
}

bool snapshots_have_store(struct trace *trace)
{
    if (!trace->store)
        trace->store = page_store_new(trace->writer);
    return trace->store != NULL;
}

/* Time for answers without a break. Hundreds of processes may wait, and those that were answered
 * end: each is looked at again and again until it is reaped. */
#define ANSWERING_NS UINT64_C(20000000)

/* Number of processes waiting at the same time that makes their snapshots be hurried: servers end
 * many, and limit their number. */
enum { WAITING_FEW = 4 };

/* Whether there is no time for memory that the process has not touched itself. Forked ones that
 * stand still share one search of it. */
static bool snapshots_are_hurried(const struct snapshot_taking *taking)
{
    const struct process *process = taking->process;
    return taking->collector->snapshots_waiting > WAITING_FEW &&
           !(process->is_forked && process->still_since != 0 && taking->collector->shared_pages);
}

/* Returns the part of a search that serves others as well. */
static struct shared_search snapshots_shared(const struct snapshot_taking *taking, bool is_waiting)
{
    struct collector *collector = taking->collector;
    bool notes = collector->snapshots_waiting > 1;
    if (notes && !collector->shared_pages)
        collector->shared_pages = shared_pages_new();
    return (struct shared_search){.shared = collector->shared_pages,
                                  .still_since = is_waiting ? taking->process->still_since : 0,
                                  .notes = notes};
}

/* Takes a snapshot with references. `request` is a copy of a waiting thread's request, or NULL. */
static enum take_result collect_take_references(struct snapshot_taking *taking,
                                                const struct snapshot_request *request)
{
    struct shared_search shared = snapshots_shared(taking, request != NULL);
    struct snapshot_order order = {
        .pid = taking->process->pid,
        .child = launched_child(taking->collector),
        .request = request,
        .interrupted = &taking->process->interrupted,
        .copies = &taking->process->copies,
        .stalls = &taking->process->stalls,
        .borrowed = &taking->borrowed,
        .copy_min = COPY_MIN,
        .store = taking->trace->store,
        .is_forked = taking->process->is_forked,
        .shared = shared,
        .is_hurried = snapshots_are_hurried(taking),
        .time_limit = SNAPSHOT_TIME_LIMIT,
        .calls = snapshot_calls_of(taking),
    };
    unsigned stalls = order.stalls->count;
    /* Most of the published records are collected before, so that less is left to do while the
     * program is held. */
    enum { ROUNDS = 5, FEW = 10000 };
    for (int i = 0; i < ROUNDS && collector_collect(taking->collector) > FEW; i++)
        ;
    enum take_result result = snapshot_take(&order, &taking->snapshot);
    taking->collector->snapshots_stalled += order.stalls->count - stalls;
    free(taking->modules);
    return result;
}

/* Takes a snapshot of the blocks alone, from the events: it is a position. */
static enum take_result collect_take_blocks(struct snapshot_taking *taking)
{
    struct snapshot_subject subject;
    bool is_taken = snapshot_settle(taking, &subject);
    free(taking->modules);
    return is_taken ? TAKE_DONE : TAKE_FAILED;
}

/* Answers a thread that waits: all that is needed of the process has been read. Returns false if
 * the request was withdrawn: a process that went on meanwhile may have changed the memory that was
 * read. */
static bool collect_answer_taken(struct snapshot_taking *taking)
{
    taking->has_answered = taking->asked != NULL;
    return !taking->asked || snapshots_answer_request(taking->asked, SNAPSHOT_TAKEN);
}

/* Writes the stack of the thread that waits, and the record that makes the parts a snapshot. */
static bool collect_complete(struct snapshot_taking *taking, const struct snapshot_request *request)
{
    struct ttd_snapshot *snapshot = &taking->snapshot;
    if (request && (snapshot->contents & TTD_SNAPSHOT_REFERENCES)) {
        snapshot->thread = snapshot_thread(taking, request->tid);
        if (!collect_waiting_thread_frames(taking->trace, snapshot, request))
            return false;
    }
    return trace_snapshot(taking->trace, snapshot);
}

/* Counts a snapshot that makes nothing certain. One of blocks alone needs no memory. */
static void collect_note_doubtful(struct collector *collector, const struct ttd_snapshot *snapshot)
{
    if (snapshot->contents == TTD_SNAPSHOT_BLOCKS)
        return;
    collector->snapshots_doubtful.torn += !(snapshot->flags & TTD_SNAPSHOT_STOPPED);
    collector->snapshots_doubtful.incomplete += (snapshot->flags & TTD_SNAPSHOT_INCOMPLETE) != 0;
}

/* Contents of memory come with references: those describe the memory. */
static enum take_result collect_take_parts(struct snapshot_taking *taking,
                                           const struct snapshot_request *request)
{
    struct trace *trace = taking->trace;
    struct ttd_snapshot *snapshot = &taking->snapshot;
    if (!trace->writer || trace->snapshots == UINT32_MAX)
        return TAKE_FAILED;
    snapshot->contents &= TTD_SNAPSHOT_REFERENCES | TTD_SNAPSHOT_MEMORY;
    if ((snapshot->contents & TTD_SNAPSHOT_MEMORY) && !snapshots_have_store(trace))
        return TAKE_FAILED;
    bool has_references = snapshot->contents != 0;
    snapshot->contents |= has_references ? TTD_SNAPSHOT_REFERENCES : TTD_SNAPSHOT_BLOCKS;
    trace_write_kept(trace);
    snapshot->number = ++trace->snapshots;
    snapshot->wall_time = process_time(taking->process, host_tick(&taking->collector->host));
    reference_writer_open(&taking->references, trace, &taking->collector->host, snapshot);
    enum take_result result =
        has_references ? collect_take_references(taking, request) : collect_take_blocks(taking);
    if (result == TAKE_DONE && !collect_answer_taken(taking))
        result = TAKE_WITHDRAWN;
    bool is_written = reference_writer_close(&taking->references, result == TAKE_DONE);
    if (result != TAKE_DONE)
        return result;
    if (!is_written || !collect_complete(taking, request))
        return TAKE_FAILED;
    collect_note_doubtful(taking->collector, snapshot);
    return TAKE_DONE;
}

static enum take_result snapshots_take_one(struct snapshot_taking *taking,
                                           const struct snapshot_request *request)
{
    taking->trace = taking->process->trace;
    taking->trace->is_in_snapshot = true;
    enum take_result result = collect_take_parts(taking, request);
    taking->trace->is_in_snapshot = false;
    return result;
}

void snapshots_note_missing(struct collector *collector, const struct process *process,
                            enum take_result result)
{
    if (result == TAKE_DONE || result == TAKE_WITHDRAWN || !process->trace->writer)
        return;
    /* A process that is ending has given its memory back, and is gone in a moment. */
    if (result == TAKE_FAILED && process->pidfd >= 0)
        poll(&(struct pollfd){.fd = process->pidfd, .events = POLLIN}, 1, ENDING_MS);
    processes_poll(&collector->processes);
    if (!process->is_gone && result == TAKE_DENIED)
        collector->snapshots_missing.denied++;
    else if (!process->is_gone)
        collector->snapshots_missing.failed++;
}

enum take_result snapshots_take(struct collector *collector, struct process *process,
                                const struct ttd_snapshot *snapshot)
{
    const struct snapshot_request *request = channel_request(&collector->host.view, process->slot);
    struct snapshot_taking taking = {
        .collector = collector,
        .process = process,
        .own_memory = request ? request->own_memory : 0,
        .borrowed = request ? request->borrowed : (struct borrowed_code){0},
        .snapshot = *snapshot,
    };
    return snapshots_take_one(&taking, NULL);
}

/* Notes that the snapshot of the end was taken: it has to show the pointers of the process. */
static void collect_note_end_snapshot(const struct collector *collector, struct process *process,
                                      enum take_result result)
{
    process->has_end_snapshot |=
        result == TAKE_DONE && (collector->snapshots.at_exit & TTD_SNAPSHOT_REFERENCES) != 0;
}

/* Takes the snapshot that a thread has asked for, and answers, once. */
static void collect_take_asked(struct collector *collector, struct process *process,
                               struct snapshot_request *asked)
{
    struct snapshot_request request; /* the program may change it meanwhile */
    memcpy(&request, asked, sizeof request);
    process->is_at_rest = false;
    request.tid = process_seen_tid(process, request.tid);
    struct snapshot_taking taking = {
        .collector = collector,
        .process = process,
        .asked = asked,
        .own_memory = request.own_memory,
        .borrowed = request.borrowed,
        /* No more than the request. */
        .snapshot = {.contents = collector->is_letting_go
                                     ? 0
                                     : request.contents & collector->snapshots.at_exit,
                     .reason = request.reason <= INT32_MAX ? request.reason : 0},
    };
    enum take_result result =
        taking.snapshot.contents != 0 ? snapshots_take_one(&taking, &request) : TAKE_FAILED;
    if (result == TAKE_DENIED && !request.has_permitted) {
        process->still_since = 0;
        snapshots_answer_request(asked, SNAPSHOT_DENIED);
        return;
    }
    if (taking.snapshot.contents != 0)
        snapshots_note_missing(collector, process, result);
    collect_note_end_snapshot(collector, process, result);
    bool is_written =
        request.signal != 0 &&
        collect_waiting_thread_signal(process, &collector->host,
                                      result == TAKE_DONE ? &taking.snapshot : NULL, &request);
    if (!taking.has_answered)
        snapshots_answer_request(asked, is_written ? SNAPSHOT_TAKEN : SNAPSHOT_REFUSED);
}

static bool snapshot_is_asked(const struct snapshot_request *request)
{
    return request && atomic_load_explicit(&request->state, memory_order_acquire) == SNAPSHOT_ASKED;
}

bool snapshots_is_awaited(struct collector *collector, const struct process *process)
{
    return snapshot_is_asked(channel_request(&collector->host.view, process->slot));
}

/* Refuses further requests of a process: one that asks all the time gets no more of our time than
 * a denied request and one more. */
static bool snapshots_refuse(struct collector *collector, struct process *process,
                             struct snapshot_request *request)
{
    enum { REQUESTS_MAX = 2 };
    if (process->requests < REQUESTS_MAX)
        return false;
    snapshots_answer_request(request, SNAPSHOT_REFUSED);
    atomic_fetch_add(&collector->host.channel->answers, 1);
    return true;
}

/* Counts the processes that wait, and notes which of them stand still from now on. Returns the one
 * that has stood still longest, or one that never does; NULL if none waits. So a search of shared
 * memory serves all that wait already, and nobody waits for those that come later. */
static struct process *snapshots_next(struct collector *collector)
{
    struct process *next = NULL;
    collector->snapshots_waiting = 0;
    for (size_t i = 0; i < collector->processes.count; i++) {
        struct process *process = collector->processes.items[i];
        struct snapshot_request *request = channel_request(&collector->host.view, process->slot);
        if (!snapshot_is_asked(request) || snapshots_refuse(collector, process, request))
            continue;
        collector->snapshots_waiting++;
        if (process->still_since == 0 &&
            threads_is_alone(process->pid, process_seen_tid(process, request->tid)))
            process->still_since = shared_pages_now();
        if (!next || process->still_since < next->still_since)
            next = process;
    }
    return next;
}

/* Answers the request of a process. */
static void snapshots_answer_process(struct collector *collector, struct process *process)
{
    collector_collect(collector);
    dumps_take(collector, process); /* which were asked for before */
    process->requests++;
    upkeep_at_end(collector, process);
    collect_take_asked(collector, process, channel_request(&collector->host.view, process->slot));
    upkeep_after_snapshot(collector, process);
    atomic_fetch_add(&collector->host.channel->answers, 1);
}

bool snapshots_answer(struct collector *collector)
{
    uint64_t begin = host_now(&collector->host);
    for (struct process *process; (process = snapshots_next(collector));) {
        if (host_now(&collector->host) - begin > ANSWERING_NS)
            return true;
        snapshots_answer_process(collector, process);
    }
    return false;
}

void snapshots_step(struct collector *collector, uint64_t now)
{
    for (size_t i = 0; i < collector->processes.count && !collector->is_letting_go; i++) {
        struct process *process = collector->processes.items[i];
        if (process->every == 0)
            continue;
        if (process->next_snapshot == 0)
            process->next_snapshot = now + process->every;
        /* One that has asked is at its end: all it holds from then on is not its own doing. */
        if (now < process->next_snapshot || process->has_exited || process->requests != 0)
            continue;
        struct ttd_snapshot snapshot = {.reason = TTD_SNAPSHOT_INTERVAL,
                                        .contents = collector->snapshots.contents};
        snapshots_note_missing(collector, process, snapshots_take(collector, process, &snapshot));
        process->next_snapshot = host_now(&collector->host) + process->every;
    }
}

void snapshots_take_last(struct collector *collector)
{
    struct process *process =
        processes_by_pid(&collector->processes, (uint32_t)collector->launched);
    const struct ttd_snapshot snapshot = {.reason = TTD_SNAPSHOT_REQUESTED,
                                          .contents = collector->snapshots.at_exit};
    collector->is_letting_go = true;
    if (!process || snapshot.contents == 0)
        return;
    enum take_result result = snapshots_take(collector, process, &snapshot);
    snapshots_note_missing(collector, process, result);
    collect_note_end_snapshot(collector, process, result);
}
