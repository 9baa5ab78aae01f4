/* SPDX-License-Identifier: MIT */
#include "collect/collector.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ttdtrace/names.h>

#include "channel_pool.h"
#include "channel_record.h"
#include "collect/channel/host.h"
#include "collect/channel/translate.h"
#include "collect/process/heaps.h"
#include "collect/process/origin.h"
#include "collect/trace/process_trace.h"

/* The contents of a trace whose file could not be written to its end. */

/* The blocks that the C and C++ runtimes keep, as found by a copy of the process: see
 * preload/end/runtime.c. */

static void process_end_written_add(struct trace *written, const struct ttd_batch *batch)
{
    if (batch->kind != TTD_KIND_EVENTS)
        return;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_event *event = &batch->u.events[i];
        written->acquisitions += event->address != 0;
        written->releases += event->action == TTD_ACTION_FREE;
    }
    written->events += batch->count;
}

/* Counts the events in the file of a trace that has failed. The trace then has these counts, and
 * all other events are lost. Calls `tick` now and then: it may take a while. */
static void process_end_written_count(struct trace *trace, void (*tick)(void *context),
                                      void *context)
{
    struct ttd_input input;
    struct ttd_batch batch;
    struct ttd_reader *reader;
    struct ttd_reader_options options = ttd_reader_options_default();
    struct trace written = {.events = 0};
    options.kinds = TTD_KIND_BIT(TTD_KIND_EVENTS);
    options.whole_chunks = true;
    if (ttd_input_file(trace->created, NULL, &input, NULL) == TTD_OK &&
        ttd_reader_open(&input, &options, NULL, &reader, NULL) == TTD_OK) {
        while (ttd_reader_next(reader, &batch, NULL) == TTD_OK) {
            process_end_written_add(&written, &batch);
            tick(context);
        }
        ttd_reader_close(reader);
    }
    if (written.events >= trace->events)
        return;
    trace->lost += trace->events - written.events;
    trace->events = written.events;
    trace->acquisitions = written.acquisitions;
    trace->releases = written.releases;
}

enum {
    BLOCKS_MAX = 65536, /* no more fit into a chunk, see ttd_writer_live_blocks() */
    OWN_MAX = 4096,
    ENDED_WAIT_MS = 100
};

/* Blocks that the copy has released, and blocks that it has acquired itself. */
struct runtime_blocks {
    uint64_t released[BLOCKS_MAX];
    size_t released_count;
    uint64_t own[OWN_MAX];
    size_t own_count;
};

static void process_end_acquired(struct runtime_blocks *blocks, uint64_t address)
{
    if (address != 0 && blocks->own_count < OWN_MAX)
        blocks->own[blocks->own_count++] = address;
}

static void process_end_released(struct runtime_blocks *blocks, uint64_t address)
{
    for (size_t i = blocks->own_count; i-- > 0;)
        if (blocks->own[i] == address) {
            blocks->own[i] = blocks->own[--blocks->own_count];
            return;
        }
    if (blocks->released_count < BLOCKS_MAX)
        blocks->released[blocks->released_count++] = address;
}

static void process_end_apply_record(struct runtime_blocks *blocks, const struct record *record)
{
    unsigned skip = 1u + record_changes(record->head);
    const struct call_shape *shape = &call_shapes[record_operation(record->head)];
    if (shape->kind == CALL_UNKNOWN || skip + shape->operands > record->count)
        return;
    uint64_t first = record->words[skip], last = record->words[skip + shape->operands - 1u];
    if (shape->kind == CALL_ACQUISITION || shape->kind == CALL_END)
        process_end_acquired(blocks, last);
    else if (first != 0)
        process_end_released(blocks, first);
}

/* Waits a moment for the copy: it ends before its process or with it. */
static bool process_end_has_ended(uint32_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd event = {.fd = pidfd, .events = POLLIN};
    if (pidfd < 0)
        return true;
    int ready_count;
    while ((ready_count = poll(&event, 1, ENDED_WAIT_MS)) < 0 && errno == EINTR)
        ;
    close(pidfd);
    return ready_count == 1;
}

/* Whether the thread has lost no calls. */
static bool process_end_is_lossless(const struct thread_slot *slot, const struct stream *stream)
{
    uint64_t lost = 0;
    for (int i = 0; i < LOSS_COUNTERS; i++)
        lost |= atomic_load_explicit(&slot->lost[i], memory_order_relaxed);
    return lost == 0 && !stream->is_broken;
}

/* Reads the records of all threads of the copy. Returns false if some are missing. */
static bool process_end_read_copy_threads(struct runtime_blocks *blocks, struct host *host,
                                          uint32_t copy)
{
    bool is_complete = true;
    uint32_t slot_count = channel_used(&host->channel->free_threads, CHANNEL_THREADS);
    for (uint32_t index = 1; index <= slot_count; index++) {
        struct thread_slot *slot = channel_thread(&host->view, index);
        if (!slot)
            continue;
        uint32_t state = atomic_load_explicit(&slot->state, memory_order_acquire);
        if ((state & SLOT_STATE) != SLOT_READY || state >> SLOT_PROCESS != copy)
            continue;
        struct stream stream = {0};
        struct record record;
        while (stream_peek(&stream, host, &slot->first, &record)) {
            process_end_apply_record(blocks, &record);
            stream_consume(&stream, &record);
        }
        is_complete = is_complete && process_end_is_lossless(slot, &stream);
        stream_close(&stream, host, &slot->first);
        host_free_thread(host, index);
    }
    return is_complete && blocks->released_count < BLOCKS_MAX;
}

/* Reads the records of the copy of a process, or of the process at its end. Returns whether they
 * are complete. */
static bool read_copy_of_process(struct runtime_blocks *blocks, struct host *host, uint32_t index,
                                 uint32_t pid)
{
    struct process_slot *copy = channel_process(&host->view, index);
    bool is_elsewhere = copy && (copy->flags & PROCESS_ELSEWHERE) != 0;
    if (!copy || atomic_load_explicit(&copy->state, memory_order_acquire) != SLOT_READY ||
        (copy->pid != pid && !is_elsewhere && !process_end_has_ended(copy->pid)))
        return false;
    bool is_complete = process_end_read_copy_threads(blocks, host, index);
    struct stream log = {0};
    stream_close(&log, host, &copy->log);
    /* Otherwise the slot has the copy of an earlier process; that came too late. */
    bool is_its_own = copy->parent_pid == pid;
    is_complete = is_complete && is_its_own && atomic_load(&copy->lost) == 0 &&
                  (atomic_load(&copy->notes) & NOTE_TOLD_ALL) != 0;
    if (!is_its_own)
        blocks->released_count = 0;
    host_free_process(host, index);
    return is_complete;
}

/*
 * Writes the list of runtime blocks of an ended process that had `slot` and `pid`. The list is
 * marked incomplete if there was no copy, or it did not finish. A process that made no calls
 * (`is_empty`) makes no copy, and has no such blocks.
 */
static void runtime_collect(struct trace *trace, struct host *host, uint32_t slot, uint32_t pid,
                            bool is_empty)
{
    static struct runtime_blocks blocks;
    blocks.released_count = blocks.own_count = 0;
    bool is_complete = read_copy_of_process(&blocks, host, channel_copy(slot), pid);
    trace_runtime_blocks(trace, blocks.released, blocks.released_count, is_complete || is_empty);
}

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
static void process_end_leave_image(struct collector *collector, struct process *process)
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
static void process_end_note_live(struct collector *collector, const struct trace *trace)
{
    uint64_t ended = trace->releases + trace->superseded;
    uint64_t live = trace->acquisitions > ended ? trace->acquisitions - ended : 0;
    if (live <= collector->most_live)
        return;
    collector->most_live = live;
    free(collector->most_live_path);
    collector->most_live_path = strdup(trace->path);
}

/* Counts the written records. The names and the end of the trace follow. */
static void process_end_count_events(struct collector *collector, struct trace *trace)
{
    trace_write_kept(trace);
    trace_state_left_out(trace);
    trace_flush(trace);
    if (!trace->writer && trace->created)
        process_end_written_count(trace, process_end_tick, &collector->host);
    collector->events += trace->events;
    collector->acquisitions += trace->acquisitions;
    collector->releases += trace->releases;
    collector->lost += trace->lost;
    process_end_note_live(collector, trace);
}

/* Takes over the trace's notes about calls that are not recorded. */
static void process_end_count_unrecorded(struct collector *collector, const struct process *process)
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
static bool process_end_states_refused(const struct collector *collector,
                                       const struct process *process)
{
    const struct process *launched =
        processes_by_pid(&collector->processes, (uint32_t)collector->launched);
    return process->is_launched ||
           (collector->launched_has_ended && (!launched || !launched->is_launched));
}

/* States how many children were not recorded, as far as no trace has stated them yet. */
static void process_end_note_refused(struct collector *collector, struct trace *trace)
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

/* States that the snapshot of the end is missing: of the program's, if one was to be taken; of the
 * recording's, if the process goes on, since an earlier snapshot does not show its pointers. */
static void process_end_note_snapshot(const struct collector *collector,
                                      const struct process *process, const struct ttd_end *end)
{
    bool was_asked = (collector->snapshots.at_exit & TTD_SNAPSHOT_REFERENCES) != 0;
    if (process->has_end_snapshot || process_is_empty(process))
        return;
    if (end->reason == TTD_END_REASON_EXITED && was_asked)
        trace_metadata(process->trace, "missing_snapshot", "of the program's end");
    if (end->reason == TTD_END_REASON_DETACHED)
        trace_metadata(process->trace, "missing_snapshot", "of the recording's end");
}

void process_end(struct collector *collector, size_t index, const struct ttd_end *end)
{
    struct process *process = processes_take(&collector->processes, index);
    uint32_t notes = atomic_load(&channel_process(&collector->host.view, process->slot)->notes);
    collector->snapshots_missing.late += (notes & NOTE_SNAPSHOT_LATE) != 0;
    uint32_t slot = process->slot;
    /* A child's command is read at its end: at first it is mostly the forking shell's. */
    if (!process->is_launched) {
        origin_image(process->trace, channel_process(&collector->host.view, slot), NULL);
        group_name_child(channel_process(&collector->host.view, slot), process->trace);
    }
    bool executed = notes & NOTE_EXECUTES;
    process_drain(process, &collector->host);
    process_end_count_unrecorded(collector, process);
    dump_queue_refuse(&process->dumps);
    collector->snapshots_missing.failed += process->dumps.refused;
    if (executed)
        process_end_leave_image(collector, process);
    else
        process_end_note_snapshot(collector, process, end);
    runtime_collect(process->trace, &collector->host, slot,
                    process->inner_pid != 0 ? process->inner_pid : process->pid,
                    process_is_empty(process));
    collector->left_out += ring_left_out(process->trace);
    collector->full += trace_state_stop(process->trace);
    if (process_end_states_refused(collector, process))
        process_end_note_refused(collector, process->trace);
    struct ttd_end end_record = *end;
    end_record.wall_time = process_time(process, end->wall_time);
    process_end_count_events(collector, process->trace);
    collector->gaps += process->gaps;
    while (!trace_closers_have_room(&collector->closers))
        host_tick(&collector->host);
    trace_closers_add(&collector->closers, process->trace, &end_record);
    process_free(process);
}

uint32_t launched_child(const struct collector *collector)
{
    return collector->is_attached ? 0 : (uint32_t)collector->launched;
}

/* A process that was attached to is not waited for by this one. */
static void launched_look_for_end(struct collector *collector)
{
    const struct process *process =
        processes_by_pid(&collector->processes, (uint32_t)collector->launched);
    bool has_ended = process
                         ? process->is_gone
                         : origin_is_over((uint32_t)collector->launched, collector->launched_start);
    if (has_ended && !collector->launched_has_ended)
        *collector->done = collector->launched_has_ended = true;
}

void launched_reap(struct collector *collector)
{
    int status;
    if (collector->is_attached) {
        launched_look_for_end(collector);
        return;
    }
    while (!collector->launched_has_ended &&
           waitpid(collector->launched, &status, WNOHANG | WUNTRACED | WCONTINUED) > 0) {
        collector->launched_stop = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
        if (WIFSTOPPED(status) || WIFCONTINUED(status))
            continue;
        collector->launched_status = status;
        *collector->done = collector->launched_has_ended = true;
    }
}

static bool launched_others_run(const struct collector *collector)
{
    for (size_t i = 0; i < collector->processes.count; i++) {
        uint32_t pid = collector->processes.items[i]->pid;
        if (pid != (uint32_t)collector->launched && origin_is_running(pid))
            return true;
    }
    return false;
}

void launched_follow_stop(struct collector *collector)
{
    if (collector->launched_stop == 0 ||
        (launched_others_run(collector) && !collector->wants_stop()))
        return;
    for (size_t i = 0; i < collector->processes.count; i++)
        trace_flush(collector->processes.items[i]->trace);
    collector->stop(collector->launched_stop);
    collector->launched_stop = 0;
}

enum { BATCH = 256 };

/* The function in the only frame of the blocks' stack. */
#define EARLIER_FUNCTION "[found when the recorder was attached]"

/* Returns the stack of the blocks; none is known: a frame in no module, with a name that says where
 * they come from. */
static ttd_id earlier_stack(struct trace *trace)
{
    static const uint64_t nowhere = 1;
    const struct ttd_name name = {.function = {EARLIER_FUNCTION, sizeof EARLIER_FUNCTION - 1}};
    if (!trace->writer ||
        (!trace->names && ttd_names_open(trace->writer, NULL, NULL, NULL, &trace->names) != TTD_OK))
        return TTD_NONE;
    trace_check(trace, ttd_names_symbol(trace->names, TTD_NONE, nowhere, &name, 1));
    return trace_whole_stack(trace, &nowhere, 1);
}

static void earlier_write_batch(struct trace *trace, ttd_id stack, const struct known_block *blocks,
                                size_t count, struct ttd_position position)
{
    struct ttd_call calls[BATCH];
    for (size_t i = 0; i < count; i++)
        calls[i] = (struct ttd_call){.address = blocks[i].address,
                                     .size = blocks[i].size,
                                     .stack = stack,
                                     .action = TTD_ACTION_ALLOC,
                                     .api = TTD_API_OTHER,
                                     .parameter_count = 1};
    trace_calls(trace, &(struct ttd_calls){
                           .calls = calls, .count = count, .heap = trace->heap, .start = position});
}

void earlier_write(struct trace *trace, const struct known_blocks *blocks, const char *reason,
                   struct ttd_position position)
{
    char text[256];
    const struct ttd_position begin = position;
    ttd_id stack = blocks->count != 0 ? earlier_stack(trace) : TTD_NONE;
    for (size_t i = 0; i < blocks->count; i += BATCH) {
        size_t count = blocks->count - i < BATCH ? blocks->count - i : BATCH;
        earlier_write_batch(trace, stack, blocks->items + i, count, position);
        position.steps += 2 * count;
    }
    snprintf(text, sizeof text, "%zu blocks of %llu bytes, found when the recorder was attached",
             blocks->count, (unsigned long long)blocks->bytes);
    trace_metadata(trace, "before", text);
    if (!reason)
        return;
    snprintf(text, sizeof text, "blocks from before the recorder was attached: %s", reason);
    trace_metadata(trace, "unrecorded", text);
    /* A block that a thread was then allocating or releasing may be listed wrongly. */
    if (blocks->is_busy)
        trace_loss(trace, TTD_LOSS_NOT_RECORDING, TTD_NONE, TTD_UNKNOWN, begin, position);
}
