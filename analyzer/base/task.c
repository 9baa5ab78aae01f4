/* SPDX-License-Identifier: MIT */
#include "base/task.h"

#include <sched.h>

static void *task_run(void *argument)
{
    struct task *task = argument;
    task->status = task->run(task->context);
    return NULL;
}

bool task_has_processor(void)
{
#ifdef THREAD_NONE
    return false;
#else
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
#endif
}

void task_start(struct task *task, task_function function, void *context)
{
    task->run = function;
    task->context = context;
    task->is_running = pthread_create(&task->thread, NULL, task_run, task) == 0;
    if (!task->is_running)
        task_run(task);
}

enum ttd_status task_wait(struct task *task)
{
    if (task->is_running)
        pthread_join(task->thread, NULL);
    task->is_running = false;
    enum ttd_status status = task->status;
    task->status = TTD_OK;
    return status;
}
