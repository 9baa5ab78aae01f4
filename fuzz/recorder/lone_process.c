/* SPDX-License-Identifier: MIT */
#include "lone_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../target.h"
#include "close_channel.h"
#include "collect/process/processes.h"
#include "collect/trace/closers.h"

enum { SLOT = 1, PATH_SIZE = 64 };

static char path[PATH_SIZE];

void trace_closers_add(struct trace_closers *closers, struct trace *trace,
                       const struct ttd_end *end)
{
    (void)closers;
    (void)end;
    trace_free(trace);
}

bool trace_closers_step(struct trace_closers *closers)
{
    (void)closers;
    return false;
}

static void remove_file(void)
{
    unlink(path);
}

static void choose_path(void)
{
    if (*path)
        return;
    strcpy(path, "/tmp/fuzz_process.XXXXXX");
    int file = mkstemp(path);
    target_require(file >= 0, "a file");
    close(file);
    atexit(remove_file);
}

void lone_process_open(struct lone_process *lone)
{
    struct ttd_error error;
    struct collector *collector = &lone->collector;
    choose_path();
    *lone = (struct lone_process){.collector = {.launched = getpid(), .command = "program"}};
    target_require(host_open(&collector->host, 0) == 0, "a channel");
    target_require(collector_open(collector, path, &error), "a collector");
    struct process_slot claim = {.pid = (uint32_t)getpid()};
    target_require(processes_reserve(&collector->processes), "room for a process");
    lone->process = process_new(SLOT, &claim, collector->first);
    target_require(lone->process != NULL, "a process");
    collector->first = NULL;
    processes_add(&collector->processes, lone->process);
    lone->thread = (struct thread_stream){.slot = SLOT,
                                          .process = SLOT,
                                          .tid = claim.pid,
                                          .shared = channel_thread(&collector->host.view, SLOT)};
    thread_stream_define(&lone->thread, lone->process->trace, claim.pid);
}

struct ttd_position lone_process_position(struct lone_process *lone)
{
    uint64_t sequence = atomic_fetch_add(&lone->collector.host.channel->sequence, 1) + 1;
    return (struct ttd_position){sequence, 0};
}

static void add_events(struct lone_events *events, const struct ttd_batch *batch)
{
    struct ttd_user_event *items =
        realloc(events->items, (events->count + batch->count) * sizeof *items);
    target_require(items != NULL, "memory");
    events->items = items;
    for (size_t i = 0; i < batch->count; i++) {
        const struct ttd_user_event *event = &batch->u.user_events[i];
        items[events->count] = *event;
        items[events->count++].data = target_copy(event->data, event->size);
    }
}

static void read_events(struct lone_events *events)
{
    struct ttd_input input;
    struct ttd_verdict verdict;
    struct ttd_reader *reader;
    struct ttd_batch batch;
    struct ttd_error error;
    *events = (struct lone_events){.count = 0};
    target_require(ttd_input_file(path, NULL, &input, NULL) == TTD_OK, "a file");
    target_require(ttd_verify(&input, NULL, NULL, &verdict, NULL) == TTD_OK && verdict.ok,
                   "the trace is intact");
    target_require(ttd_input_file(path, NULL, &input, NULL) == TTD_OK, "a file");
    target_require(ttd_reader_open(&input, NULL, NULL, &reader, &error) == TTD_OK, "a trace");
    enum ttd_status status = ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_USER_EVENTS));
    while (status == TTD_OK && (status = ttd_reader_next(reader, &batch, &error)) == TTD_OK)
        if (batch.kind == TTD_KIND_USER_EVENTS)
            add_events(events, &batch);
    target_require(status == TTD_END, "the trace can be read");
    ttd_reader_close(reader);
}

void lone_process_close(struct lone_process *lone, struct lone_events *events)
{
    struct collector *collector = &lone->collector;
    struct trace *trace = lone->process->trace;
    struct ttd_end end = {.reason = TTD_END_REASON_EXITED};
    user_events_reach(lone->process, UINT64_MAX);
    target_require(trace->writer != NULL, "a writer");
    target_require(ttd_writer_close(trace->writer, &end, &trace->error) == TTD_OK,
                   "the trace is closed");
    trace->writer = NULL;
    processes_take(&collector->processes, 0);
    process_free(lone->process);
    trace_free(trace);
    collector_close(collector);
    close_channel(&collector->host);
    read_events(events);
}

void lone_events_free(struct lone_events *events)
{
    for (size_t i = 0; i < events->count; i++)
        free((void *)(uintptr_t)events->items[i].data);
    free(events->items);
}
