/* SPDX-License-Identifier: MIT */
/** The threads of the system. On one without any, such as WebAssembly, none can be started, which
 * everybody who starts one allows for; locks then do nothing. */
#ifndef ANALYZER_BASE_THREAD_H
#define ANALYZER_BASE_THREAD_H

#ifdef __wasm__

#include <errno.h>

typedef char pthread_t;
typedef char pthread_mutex_t;
typedef char pthread_cond_t;

static inline int pthread_create(pthread_t *thread, const void *attributes,
                                 void *(*run)(void *argument), void *argument)
{
    (void)thread;
    (void)attributes;
    (void)run;
    (void)argument;
    return ENOSYS;
}

/* Nobody waits, since there is nobody to wait for. */
#define pthread_join(thread, result)          ((void)(thread))
#define pthread_mutex_init(mutex, options)    ((void)(mutex))
#define pthread_mutex_destroy(mutex)          ((void)(mutex))
#define pthread_mutex_lock(mutex)             ((void)(mutex))
#define pthread_mutex_unlock(mutex)           ((void)(mutex))
#define pthread_cond_init(condition, options) ((void)(condition))
#define pthread_cond_destroy(condition)       ((void)(condition))
#define pthread_cond_signal(condition)        ((void)(condition))
#define pthread_cond_wait(condition, mutex)   ((void)(condition))

/** There are no threads. */
#define THREAD_NONE

#else

#include <pthread.h>

#endif

#endif
