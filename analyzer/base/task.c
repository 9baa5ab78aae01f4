/* SPDX-License-Identifier: MIT */
#include "base/task.h"

static void *run(void *argument)
{
    struct task *work = argument;
    work->status = work->run(work->context);
    return NULL;
}

void task_start(struct task *work, task_function function, void *context)
{
    work->run = function;
    work->context = context;
    work->is_running = pthread_create(&work->thread, NULL, run, work) == 0;
    if (!work->is_running)
        run(work);
}

enum ttd_status task_wait(struct task *work)
{
    if (work->is_running)
        pthread_join(work->thread, NULL);
    work->is_running = false;
    enum ttd_status status = work->status;
    work->status = TTD_OK;
    return status;
}
