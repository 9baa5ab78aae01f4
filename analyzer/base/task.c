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

/* Things that are worth the start of a thread. */
#define WORTH_A_THREAD 65536

struct second_half {
    halves_function function;
    void *context;
    size_t count;
};

static enum ttd_status do_second(void *context)
{
    const struct second_half *half = context;
    return half->function(half->context, halves_middle(half->count), half->count);
}

enum ttd_status halves_do(halves_function function, void *first, void *second, size_t count)
{
    struct second_half half = {function, second, count};
    struct task task = {.is_running = false};
    bool are_two = count >= WORTH_A_THREAD && task_has_processor();
    if (are_two)
        task_start(&task, do_second, &half);
    enum ttd_status first_status = function(first, 0, halves_middle(count));
    enum ttd_status second_status = are_two ? task_wait(&task) : do_second(&half);
    return first_status == TTD_OK ? second_status : first_status;
}
