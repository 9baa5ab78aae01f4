/* SPDX-License-Identifier: MIT */
#include "base/task.h"

static void *run(void *argument)
{
    struct task *task = argument;
    task->status = task->run(task->context);
    return NULL;
}

void task_start(struct task *task, task_function function, void *context)
{
    task->run = function;
    task->context = context;
    task->is_running = pthread_create(&task->thread, NULL, run, task) == 0;
    if (!task->is_running)
        run(task);
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
