/* SPDX-License-Identifier: MIT */
#include "collect/process/processes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arrays.h"
#include "collect/process/heaps.h"

/* Fields of an event of TTD_CLIENT_THREADS, by their words. */
enum { CLIENT_SIZE = 16, ISLAND_STATE = 5, ISLAND_SKIPPED = 6 };

bool user_events_write(struct process *process, struct thread_stream *thread,
                       struct ttd_position position, const volatile uint64_t *operands,
                       unsigned words)
{
    uint64_t copy[STACK_DEPTH_MAX], client[2];
    uint64_t flags = operands[EVENT_FLAGS], size = operands[EVENT_SIZE];
    if ((flags & ~(uint64_t)(TTD_USER_EVENT_KEYFRAME | EVENT_OF_THREAD | EVENT_OF_HEAP |
                             EVENT_OF_DUMP)) != 0 ||
        words > STACK_DEPTH_MAX || size > words * sizeof *copy ||
        size + sizeof *copy <= words * sizeof *copy)
        return false;
    for (unsigned i = 0; i < words; i++)
        copy[i] = operands[EVENT_OPERANDS + i];
    struct ttd_user_event event = {
        .position = position,
        .wall_time = thread->wall_time,
        .thread = flags & EVENT_OF_THREAD ? thread->id : TTD_NONE,
        .flags = (uint32_t)flags & TTD_USER_EVENT_KEYFRAME,
        .data = (const uint8_t *)copy,
        .size = size,
    };
    for (int i = 0; i < 2; i++)
        client[i] = operands[EVENT_CLIENT + i];
    if (flags & EVENT_OF_HEAP) {
        heaps_define(process,
                     &(struct heap_definition){.handle = client[0],
                                               .parent = client[1],
                                               .sequence = position.sequence,
                                               .name = (const char *)copy,
                                               .size = size},
                     position);
        return true;
    }
    if (flags & EVENT_OF_DUMP)
        return dump_queue_add(&process->dumps, thread, client, copy, size);
    memcpy(event.client, client, sizeof event.client);
    trace_user_event(process->trace, &event);
    if (memcmp(client, TTD_CLIENT_THREADS, sizeof client) == 0 && !thread->outer &&
        words >= TTD_THREAD_EVENT_FIELDS)
        losses_of_gap(process, thread, copy[ISLAND_STATE] != TTD_ISLAND_RECORDING, position,
                      copy[ISLAND_SKIPPED]);
    return true;
}

/* Keeps an event from outside of the program until all before its position is written. */
static bool user_events_keep(struct process *process, struct host *host, uint64_t sequence,
                             const char *client, const void *data, size_t size)
{
    void *events = process->outside_count < OUTSIDE_MAX && size <= sizeof process->outside->data
                       ? array_grow(process->outside, process->outside_count,
                                    &process->outside_capacity, sizeof *process->outside)
                       : NULL;
    if (!events)
        return false;
    process->outside = events;
    struct outside_event *event = &process->outside[process->outside_count];
    *event = (struct outside_event){
        .sequence = sequence,
        .wall_time = process_time(process, atomic_load(&host->channel->clock)),
        .client = client,
        .size = size,
    };
    memcpy(event->data, data, size);
    process->outside_count += event->sequence <= TTD_SEQUENCE_MAX;
    return event->sequence <= TTD_SEQUENCE_MAX;
}

/* Keeps an event of the recorder's user, at a position of its own. */
static bool user_events_write_later(struct process *process, struct host *host, const char *client,
                                    const void *data, size_t size)
{
    if (process->outside_count >= OUTSIDE_MAX)
        return false;
    uint64_t sequence = atomic_fetch_add(&host->channel->sequence, 1) + 1;
    return user_events_keep(process, host, sequence, client, data, size);
}

/* Reads a line of /proc/PID/status, such as "VmRSS:     5124 kB". */
static void user_events_memory_read_line(const char *line, uint64_t fields[TTD_MEMORY_EVENT_FIELDS])
{
    static const char *const names[TTD_MEMORY_EVENT_FIELDS] = {"VmRSS:", "VmSize:", "VmHWM:"};
    uint64_t kilobytes = 0;
    for (int i = 0; i < TTD_MEMORY_EVENT_FIELDS; i++) {
        size_t size = strlen(names[i]);
        if (strncmp(line, names[i], size) == 0 &&
            sscanf(line + size, "%" SCNu64 " kB", &kilobytes) == 1)
            fields[i] = kilobytes * 1024;
    }
}

void user_events_memory(struct process *process, struct host *host)
{
    uint64_t fields[TTD_MEMORY_EVENT_FIELDS] = {0};
    uint64_t sequence = atomic_load(&host->channel->sequence);
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%u/status", process->pid);
    FILE *file = sequence != 0 ? fopen(path, "re") : NULL;
    if (!file)
        return;
    while (fgets(line, sizeof line, file))
        user_events_memory_read_line(line, fields);
    fclose(file);
    /* A process that has ended has no memory any more. */
    if (fields[TTD_MEMORY_RESIDENT] != 0)
        user_events_keep(process, host, sequence, TTD_CLIENT_MEMORY, fields, sizeof fields);
}

void user_events_write_outside(struct process *process, uint64_t bound)
{
    size_t written = 0;
    while (written < process->outside_count && process->outside[written].sequence <= bound) {
        const struct outside_event *outside = &process->outside[written++];
        struct ttd_user_event event = {
            .position = {outside->sequence, 0},
            .wall_time = outside->wall_time,
            .data = outside->data,
            .size = outside->size,
        };
        memcpy(event.client, outside->client, CLIENT_SIZE);
        trace_user_event(process->trace, &event);
    }
    process->outside_count -= written;
    if (written != 0)
        memmove(process->outside, process->outside + written,
                process->outside_count * sizeof *process->outside);
}

bool user_events_mark(struct process *process, struct host *host, const char *text, size_t size)
{
    return user_events_write_later(process, host, TTD_CLIENT_MARKS, text, size);
}

/* Each thread looks at its own flag, after each of its records; one that attaches meanwhile copies
 * the flag of the process. See also process_add_thread(). */
static void user_events_set_paused(struct process *process, struct host *host, bool is_paused)
{
    atomic_store(&channel_process(&host->view, process->slot)->paused, is_paused);
    for (size_t i = 0; i < process->thread_count; i++)
        atomic_store(&process->threads[i]->shared->paused, is_paused);
}

void user_events_stop(struct process *process, struct host *host)
{
    process->outside_count = 0;
    process->is_paused = true;
    user_events_set_paused(process, host, true);
}

bool user_events_pause(struct process *process, struct host *host, bool is_paused)
{
    const uint64_t fields[TTD_THREAD_EVENT_FIELDS] = {
        is_paused ? TTD_THREAD_PAUSED : TTD_THREAD_RESUMED, [ISLAND_STATE] =
                                                                is_paused ? TTD_ISLAND_PAUSED
                                                                          : TTD_ISLAND_RECORDING};
    if (process->is_paused == is_paused ||
        !user_events_write_later(process, host, TTD_CLIENT_THREADS, fields, sizeof fields))
        return false;
    process->is_paused = is_paused;
    user_events_set_paused(process, host, is_paused);
    return true;
}
