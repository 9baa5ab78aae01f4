/* SPDX-License-Identifier: MIT */
/* Long names on Windows, where no process can be copied: a thread demangles each. A thread that
 * takes too long is left to itself with its task, and ends with the process; the limit on failures
 * bounds how many there are. */
#include "symbols/demangle.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct demangle_task {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool is_done;
    size_t limit, size;
    char *text;
    char name[];
};

static void demangle_free_task(struct demangle_task *task)
{
    pthread_cond_destroy(&task->ended);
    pthread_mutex_destroy(&task->mutex);
    free(task->text);
    free(task);
}

static void *demangle_run_alone(void *context)
{
    struct demangle_task *task = context;
    size_t size = demangle_long(task->name, task->text, task->limit);
    pthread_mutex_lock(&task->mutex);
    task->size = size;
    task->is_done = true;
    pthread_cond_signal(&task->ended);
    pthread_mutex_unlock(&task->mutex);
    return NULL;
}

static struct demangle_task *demangle_new_task(struct ttd_string name, size_t limit)
{
    struct demangle_task *task = calloc(1, sizeof *task + name.size + 1);
    char *text = malloc(limit + 1);
    if (!task || !text) {
        free(task);
        free(text);
        return NULL;
    }
    task->text = text;
    task->limit = limit;
    memcpy(task->name, name.data, name.size);
    pthread_mutex_init(&task->mutex, NULL);
    pthread_cond_init(&task->ended, NULL);
    return task;
}

static bool demangle_start(struct demangle_task *task, size_t name_size)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    bool is_started =
        pthread_attr_setstacksize(&attributes,
                                  (UINT64_C(1) << 20) + name_size * DEMANGLE_STACK_RATIO) == 0 &&
        pthread_create(&task->thread, &attributes, demangle_run_alone, task) == 0;
    pthread_attr_destroy(&attributes);
    return is_started;
}

static uint64_t demangle_now(struct timespec *time)
{
    clock_gettime(CLOCK_REALTIME, time);
    return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_nsec / 1000;
}

/* Waits for the end; false if that takes too long. */
static bool demangle_wait(struct demangle_task *task, struct demangle_process *process)
{
    struct timespec time;
    uint64_t begin = demangle_now(&time), end = begin + DEMANGLE_TIME;
    time = (struct timespec){(time_t)(end / 1000000), (long)(end % 1000000 * 1000)};
    pthread_mutex_lock(&task->mutex);
    while (!task->is_done && pthread_cond_timedwait(&task->ended, &task->mutex, &time) == 0)
        continue;
    bool is_done = task->is_done;
    pthread_mutex_unlock(&task->mutex);
    if (is_done)
        pthread_join(task->thread, NULL);
    process->time += demangle_now(&time) - begin;
    return is_done;
}

size_t demangle_process_find(struct demangle_process *process, struct ttd_string name, char *text,
                             size_t limit)
{
    if (process->time >= DEMANGLE_TOTAL_TIME || process->failures >= DEMANGLE_FAILURES_MAX)
        return 0;
    struct demangle_task *task = demangle_new_task(name, limit);
    if (!task)
        return 0;
    if (!demangle_start(task, name.size)) {
        demangle_free_task(task);
        process->failures++;
        return 0;
    }
    if (!demangle_wait(task, process)) {
        process->failures++;
        return 0;
    }
    size_t size = task->size <= limit ? task->size : 0;
    memcpy(text, task->text, size);
    demangle_free_task(task);
    return size;
}

void demangle_process_end(struct demangle_process *process)
{
    process->id = 0;
}
