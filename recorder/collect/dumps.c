/* SPDX-License-Identifier: MIT */
#include "collect/collector.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "snapshot/pages/page_contents.h"
#include "snapshot/layout/maps.h"
#include "snapshot/process_reader.h"
#include "snapshot/stop/threads.h"

enum { PAGE = 4096 };

/* The parts of a process's memory that a dump adds, by address. */
struct parts {
    struct contents_part *items;
    size_t count;
};

static uint32_t dump_protection(const struct mapping *mapping)
{
    return TTD_MEMORY_READ | (mapping->is_writable ? TTD_MEMORY_WRITE : 0) |
           (mapping->is_executable ? TTD_MEMORY_EXECUTE : 0) |
           (mapping->is_shared ? TTD_MEMORY_SHARED : 0);
}

/* Finds the mapped parts of [begin, end). Returns false if memory ran out, it is not permitted, or
 * the process ended meanwhile. */
static bool dumps_find_parts(struct parts *parts, uint32_t pid, uint32_t tid,
                             const struct dump *dump)
{
    struct maps maps;
    bool is_whole = maps_read(&maps, pid, tid) && maps.is_whole;
    parts->items = is_whole ? calloc(maps.count + 1, sizeof *parts->items) : NULL;
    for (size_t i = 0; parts->items && i < maps.count; i++) {
        const struct mapping *mapping = &maps.items[i];
        uint64_t begin = dump->begin / PAGE * PAGE;
        begin = begin > mapping->begin ? begin : mapping->begin;
        uint64_t end =
            dump->end < mapping->end ? (dump->end + PAGE - 1) / PAGE * PAGE : mapping->end;
        /* Private memory may have been protected by the program. */
        bool is_of_use = mapping->is_readable || !(mapping->is_file || mapping->is_shared);
        if (begin < end && is_of_use &&
            (mapping->is_writable || dump->kind != DUMP_MODULE_WRITABLE))
            parts->items[parts->count++] =
                (struct contents_part){begin, end, dump_protection(mapping)};
    }
    maps_free(&maps);
    return parts->items != NULL;
}

static void dumps_tick(void *context)
{
    host_tick(&((struct collector *)context)->host);
}

static uint64_t dumps_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Writes the parts as a snapshot, at a position behind all that was published before. */
static enum take_result dumps_write_parts(struct collector *collector, struct process *process,
                                          const struct dump *dump, struct memory *memory,
                                          const struct parts *parts)
{
    struct trace *trace = process->trace;
    uint64_t sequence = atomic_fetch_add(&collector->host.channel->sequence, 1) + 1;
    if (trace->snapshots == UINT32_MAX || sequence > TTD_SEQUENCE_MAX ||
        !snapshots_have_store(trace))
        return TAKE_FAILED;
    trace_write_kept(trace);
    bool is_alone = dump->waiter && threads_is_alone(process->pid, dump->tid);
    struct ttd_snapshot snapshot = {
        .number = ++trace->snapshots,
        .position = {sequence, 0},
        .wall_time = process_time(process, host_tick(&collector->host)),
        .contents = TTD_SNAPSHOT_MEMORY,
        .reason = TTD_SNAPSHOT_PROGRAM,
        .flags = is_alone ? TTD_SNAPSHOT_STOPPED : 0,
        .thread = dump->thread,
    };
    struct contents_job job = {
        .memory = memory, .store = trace->store, .tick = dumps_tick, .context = collector};
    collector_collect(collector);
    if (!trace->writer)
        return TAKE_FAILED;
    memory->deadline = dumps_now() + SNAPSHOT_TIME_LIMIT;
    page_store_begin(trace->store, snapshot.number, snapshot.position);
    snapshot.missing = contents_dump(&job, parts->items, parts->count);
    snapshot.flags |= snapshot.missing != 0 ? TTD_SNAPSHOT_INCOMPLETE : 0;
    bool is_written = page_store_end(trace->store) == TTD_OK && process_has_image(process) &&
                      trace_snapshot(trace, &snapshot);
    return is_written ? TAKE_DONE : TAKE_FAILED;
}

/* A range without mappings leaves nothing in the trace. A thread that does not wait may have
 * executed another program: that one's memory is not the requested one. */
static enum take_result dumps_read_range(struct collector *collector, struct process *process,
                                         const struct dump *dump)
{
    struct memory memory;
    struct parts parts = {.count = 0};
    /* A thread that does not wait may have ended. */
    uint32_t tid = dump->tid;
    if (!memory_open(&memory, process->pid, tid) &&
        !memory_open(&memory, process->pid, tid = process->pid))
        return errno == EPERM || errno == EACCES ? TAKE_DENIED : TAKE_FAILED;
    enum take_result result = TAKE_FAILED;
    process->trace->is_in_snapshot = true;
    if (process_has_image(process) && dumps_find_parts(&parts, process->pid, tid, dump))
        result = parts.count == 0 ? TAKE_WITHDRAWN
                                  : dumps_write_parts(collector, process, dump, &memory, &parts);
    process->trace->is_in_snapshot = false;
    free(parts.items);
    memory_close(&memory);
    return result;
}

/* A reader's task, and its result. */
struct dump_reading {
    struct collector *collector;
    struct process *process;
    const struct dump *dump;
    enum take_result result;
    bool has_stalled;
};

static void dump_read(void *context)
{
    struct dump_reading *reading = context;
    reading->result = dumps_read_range(reading->collector, reading->process, reading->dump);
}

static void dump_watch(void *context, uint64_t stalled)
{
    ((struct dump_reading *)context)->has_stalled |= stalled > READER_STALL_NS;
}

static enum take_result dumps_take_range(struct collector *collector, struct process *process,
                                         const struct dump *dump)
{
    struct dump_reading reading = {collector, process, dump, TAKE_FAILED, false};
    if (dump->begin >= dump->end || !process->trace->writer)
        return TAKE_WITHDRAWN;
    if (process->stalls.left == READERS_LEFT_MAX)
        return TAKE_FAILED;
    bool has_ended = reader_run(dump_read, dump_watch, &reading);
    process->stalls.left += !has_ended;
    process->stalls.count += reading.has_stalled;
    collector->snapshots_stalled += reading.has_stalled;
    return has_ended ? reading.result : TAKE_FAILED;
}

static enum take_result dump_take_module(struct collector *collector, struct process *process,
                                         const struct dump *dump)
{
    const struct modules *modules = &process->trace->modules;
    struct dump range = *dump;
    range.end = range.begin;
    for (size_t i = 0; i < modules->count; i++) {
        const struct module *module = &modules->items[i];
        if (!module->is_loaded || dump->begin < module->begin || dump->begin >= module->end)
            continue;
        range.begin = module->begin;
        range.end = module->end;
    }
    return dumps_take_range(collector, process, &range);
}

/* Returns the absolute path of the trace. */
static enum take_result dumps_tell_name(struct collector *collector, const struct process *process)
{
    struct trace_name *name = channel_trace_name(&collector->host.view, process->slot);
    const char *path = process->trace->created ? process->trace->created : process->trace->path;
    char *absolute = realpath(path, NULL);
    size_t size = absolute ? strlen(absolute) : 0;
    bool has_room = name && size != 0 && size < sizeof name->text;
    if (has_room) {
        memcpy(name->text, absolute, size);
        atomic_store(&name->size, (uint32_t)size);
    }
    free(absolute);
    return has_room ? TAKE_DONE : TAKE_WITHDRAWN;
}

static enum take_result dump_take(struct collector *collector, struct process *process,
                                  const struct dump *dump)
{
    struct ttd_snapshot snapshot = {.reason = TTD_SNAPSHOT_PROGRAM,
                                    .contents = TTD_SNAPSHOT_REFERENCES | TTD_SNAPSHOT_MEMORY,
                                    .thread = dump->thread};
    switch ((enum dump_kind)dump->kind) {
    case DUMP_HEAPS:
        return snapshots_take(collector, process, &snapshot);
    case DUMP_RANGE:
        return dumps_take_range(collector, process, dump);
    case DUMP_MODULE:
    case DUMP_MODULE_WRITABLE:
        return dump_take_module(collector, process, dump);
    case DUMP_NAME:
        break;
    }
    return dumps_tell_name(collector, process);
}

void dumps_take(struct collector *collector, struct process *process)
{
    struct dump dump;
    /* No more than have been asked for by now: a program may ask all the time. */
    for (size_t remaining = process->dumps.count;
         remaining > 0 && !process->has_exited && dump_queue_take(&process->dumps, &dump);
         remaining--) {
        enum take_result result = dump_take(collector, process, &dump);
        snapshots_note_missing(collector, process, result);
        /* Unlike a snapshot at the end, it was asked for before the process ended. */
        bool is_missing = result == TAKE_FAILED || result == TAKE_DENIED;
        collector->snapshots_missing.failed += is_missing && process->is_gone;
        dump_answer(&dump, result == TAKE_DONE);
    }
    collector->snapshots_missing.failed += process->dumps.refused;
    process->dumps.refused = 0;
}

void dumps_step(struct collector *collector)
{
    for (size_t i = 0; i < collector->processes.count; i++)
        dumps_take(collector, collector->processes.items[i]);
}
