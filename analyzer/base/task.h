/* SPDX-License-Identifier: MIT */
/** A task that runs in another thread. */
#ifndef ANALYZER_BASE_TASK_H
#define ANALYZER_BASE_TASK_H

#include <stdbool.h>

#include <ttdtrace/status.h>

#include "base/thread.h"

typedef enum ttd_status (*task_function)(void *context);

/** All zero when no task was started. */
struct task {
    bool is_running;
    pthread_t thread;
    task_function run;
    void *context;
    enum ttd_status status;
};

/** Starts a task. The previous one must have been waited for. Without a free thread the task runs
 * here. `task` must not move until the task has ended. */
void task_start(struct task *task, task_function function, void *context);

/** Whether a task may run beside its starter: the process may use more than one processor. */
bool task_has_processor(void);

/** Waits for the end of the task, if one was started. @return what the task returned, or TTD_OK. */
enum ttd_status task_wait(struct task *task);

#endif
