/* SPDX-License-Identifier: MIT */
/** Work that another thread does meanwhile. */
#ifndef ANALYZER_BASE_TASK_H
#define ANALYZER_BASE_TASK_H

#include <pthread.h>
#include <stdbool.h>

#include <ttdtrace/status.h>

typedef enum ttd_status (*task_function)(void *context);

/** All zero when nothing was started. */
struct task {
    bool is_running;
    pthread_t thread;
    task_function run;
    void *context;
    enum ttd_status status;
};

/** Starts work, after task_wait(); where there is no thread to be had it is done here. `work` must
 * not be moved before it has ended. */
void task_start(struct task *task, task_function run, void *context);

/** Waits until what was started has ended, if anything was. @return what it returned, or TTD_OK. */
enum ttd_status task_wait(struct task *task);

#endif
