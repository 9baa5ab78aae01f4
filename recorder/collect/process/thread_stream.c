/* SPDX-License-Identifier: MIT */
#include "collect/process/thread_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "collect/channel/host.h"

ttd_id thread_stream_begin(struct trace *trace, struct ttd_position position, uint32_t pid,
                           uint32_t tid)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%u/task/%u/comm", pid, tid);
    FILE *file = fopen(path, "re");
    if (file) {
        if (fgets(name, sizeof name, file))
            name[strcspn(name, "\n")] = '\0';
        fclose(file);
    }
    return trace_thread_begin(trace, position, tid, name);
}

static void stream_define_outermost(struct thread_stream *thread, struct trace *trace, uint32_t pid)
{
    struct ttd_position position = {thread->shared->sequence, 0};
    if (thread_stream_renamed(thread))
        thread->id = trace_thread_begin(trace, position, thread->tid, thread->name);
    else
        thread->id = thread_stream_begin(trace, position, pid, thread->tid);
    thread->is_defined = true;
}

bool thread_stream_renamed(struct thread_stream *thread)
{
    char name[THREAD_NAME_SIZE];
    const volatile char *shared = thread->shared->name;
    for (size_t i = 0; i < sizeof name; i++)
        name[i] = shared[i];
    name[sizeof name - 1] = '\0';
    if (name[0] == '\0' || strcmp(name, thread->name) == 0)
        return false;
    strcpy(thread->name, name);
    return true;
}

void thread_stream_define(struct thread_stream *thread, struct trace *trace, uint32_t pid)
{
    struct thread_stream *outer = thread->outer ? thread->outer : thread;
    if (!outer->is_defined)
        stream_define_outermost(outer, trace, pid);
    thread->id = outer->id;
    thread->is_defined = true;
}

static void stream_dump_queue_refuse_one(struct dump_queue *queue, const struct dump *dump)
{
    queue->refused += dump->kind != DUMP_NAME;
    dump_answer(dump, false);
}

bool dump_queue_add(struct dump_queue *queue, struct thread_stream *thread,
                    const uint64_t client[2], const uint64_t *fields, size_t size)
{
    if (size != DUMP_FIELDS * sizeof *fields || fields[DUMP_KIND] > DUMP_NAME)
        return false;
    struct dump dump = {.kind = (uint32_t)fields[DUMP_KIND],
                        .serial = (uint32_t)fields[DUMP_SERIAL],
                        .begin = client[0],
                        .end = client[1],
                        .tid = thread->tid,
                        .thread = thread->id,
                        .waiter = fields[DUMP_SERIAL] != 0 ? thread->shared : NULL};
    void *items = queue->count < DUMPS_MAX ? array_grow(queue->items, queue->count,
                                                        &queue->capacity, sizeof *queue->items)
                                           : NULL;
    if (!items) {
        stream_dump_queue_refuse_one(queue, &dump);
        return true;
    }
    queue->items = items;
    queue->items[queue->count++] = dump;
    return true;
}

void dump_answer(const struct dump *dump, bool is_taken)
{
    if (!dump->waiter)
        return;
    atomic_store_explicit(&dump->waiter->answered, dump->serial << 1 | is_taken,
                          memory_order_release);
    host_wake(&dump->waiter->answered);
}

bool dump_queue_take(struct dump_queue *queue, struct dump *dump)
{
    if (queue->count == 0)
        return false;
    *dump = queue->items[0];
    memmove(queue->items, queue->items + 1, --queue->count * sizeof *queue->items);
    return true;
}

void dump_queue_refuse(struct dump_queue *queue)
{
    struct dump dump;
    while (dump_queue_take(queue, &dump))
        stream_dump_queue_refuse_one(queue, &dump);
}

void dump_queue_free(struct dump_queue *queue)
{
    free(queue->items);
}
