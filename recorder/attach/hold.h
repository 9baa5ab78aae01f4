/* SPDX-License-Identifier: MIT */
/**
 * Holds a program that this process starts, from its execution until it is recorded. One thread
 * traces it and does all work on it, so that it does not run in between. Nothing of the program is
 * changed: if this process dies, the program runs on.
 */
#ifndef RECORDER_ATTACH_HOLD_H
#define RECORDER_ATTACH_HOLD_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "snapshot/stop/threads.h"

struct attach_hold {
    uint32_t pid;
    pthread_t thread;
    sem_t asked, done;
    void (*work)(void *context); /* NULL: let it go, and end */
    void *context;
    struct interrupted_calls *interrupted;
    struct threads threads; /* its only one, once it is stopped */
    bool is_traced;
    bool is_stopped;
};

/** Begins to trace a child that is about to execute a program. Returns false if that is not
 * permitted. */
bool attach_hold_begin(struct attach_hold *hold, uint32_t pid,
                       struct interrupted_calls *interrupted);

/** Waits until the child has executed the program, and stands before its first instruction. Returns
 * false if the child has ended. */
bool attach_hold_program(struct attach_hold *hold);

/** Lets the program run until its C library has set up the first thread; nothing is allocated
 * before. Returns NULL, or the reason why the program cannot be stopped there. */
const char *attach_hold_thread(struct attach_hold *hold);

/** Does some work in the thread that traces the program; `tick` (may be NULL) is called every
 * millisecond meanwhile. */
void attach_hold_do(struct attach_hold *hold, void (*work)(void *context), void *context,
                    void (*tick)(void *context), void *tick_context);

/** Lets the program go, and stops tracing it. */
void attach_hold_end(struct attach_hold *hold);

#endif
