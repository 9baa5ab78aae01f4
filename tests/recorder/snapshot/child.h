/* SPDX-License-Identifier: MIT */
/* A child process that does something, says so, and stays as it is until it is told to go on. */
#ifndef TEST_SNAPSHOT_CHILD_H
#define TEST_SNAPSHOT_CHILD_H

#include <stdint.h>
#include <sys/types.h>

struct child {
    pid_t pid;
    volatile struct child_shared {
        uint64_t values[128]; /* of the two processes, as they like */
        int is_ready;
        int may_go;
    } * shared;
};

typedef void child_function(volatile struct child_shared *shared);

/* Starts a child; returns when `function` has called child_wait(). */
struct child child_start(child_function *function);

/* Called by the child: waits until it may go on. */
void child_wait(volatile struct child_shared *shared);

/* Lets the child go on, and returns its status as from waitpid(). */
int child_end(struct child *child);

#endif
