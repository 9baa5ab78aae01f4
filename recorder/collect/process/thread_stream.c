/* SPDX-License-Identifier: MIT */
#include "collect/process/thread_stream.h"

#include <stdio.h>
#include <string.h>

ttd_id thread_stream_begin(struct trace *trace, struct ttd_position position, uint32_t pid,
                           uint32_t tid)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%u/task/%u/comm", pid, tid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(name, sizeof name, file) != NULL)
            name[strcspn(name, "\n")] = '\0';
        fclose(file);
    }
    return trace_thread_begin(trace, position, tid, name);
}

static void define_outermost(struct thread_stream *thread, struct trace *trace, uint32_t pid)
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
    struct thread_stream *outer = thread->outer != NULL ? thread->outer : thread;
    if (!outer->is_defined)
        define_outermost(outer, trace, pid);
    thread->id = outer->id;
    thread->is_defined = true;
}
