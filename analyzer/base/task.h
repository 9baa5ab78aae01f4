/* SPDX-License-Identifier: MIT */
/** A task that runs in another thread. */
#ifndef ANALYZER_BASE_TASK_H
#define ANALYZER_BASE_TASK_H

#include <stdbool.h>
#include <stddef.h>
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

/** Waits for the end of the task, if one was started. @return the task's result, or TTD_OK. */
enum ttd_status task_wait(struct task *task);

/* Work on many things in a row, of which two threads do half each. */

/** Does the work on the things from number `begin` up to `end`, without that. */
typedef enum ttd_status (*halves_function)(void *context, size_t begin, size_t end);

/** Where the second half begins. */
static inline size_t halves_middle(size_t count)
{
    return count / 2;
}

/**
 * Calls a function for the first half with the context `first`, and for the second half with
 * `second`: one after the other, in any order, if there are few things, or only one processor; else
 * at the same time.
 *
 * @return the status of the first half; if it is TTD_OK, the status of the second
 */
enum ttd_status halves_do(halves_function function, void *first, void *second, size_t count);

#endif
