/* SPDX-License-Identifier: MIT */
/** A thread without a running signal handler. Shared by attach, snapshot and collect, and a subject
 * of its own. */
#ifndef RECORDER_QUIET_THREAD_H
#define RECORDER_QUIET_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/** Starts a thread. Returns false if there can be no other one. */
static inline bool quiet_thread_start(pthread_t *thread, void *(*run)(void *), void *context)
{
    sigset_t all_signals, before;
    sigfillset(&all_signals);
    pthread_sigmask(SIG_SETMASK, &all_signals, &before);
    bool is_started = pthread_create(thread, NULL, run, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_started;
}

#endif
