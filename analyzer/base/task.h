/* SPDX-License-Identifier: MIT */
/** Threads of the system, tasks that run in another one, and rings between two. */
#ifndef ANALYZER_BASE_TASK_H
#define ANALYZER_BASE_TASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ttdtrace/status.h>

/* The threads of the system. On one without any, such as WebAssembly, none can be started, and each
 * caller allows for it; locks then do nothing. */

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
#define pthread_cond_broadcast(condition)     ((void)(condition))
#define pthread_cond_wait(condition, mutex)   ((void)(condition))

/** There are no threads. */
#define THREAD_NONE

#else

#include <pthread.h>

#endif

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

/** Returns how many processors the process may use; 1 where there are no threads. */
unsigned task_processors(void);

/** Whether a task may run beside its starter: the process may use more than one processor. */
bool task_has_processor(void);

/** Waits for the end of the task, if one was started. @return the task's result, or TTD_OK. */
enum ttd_status task_wait(struct task *task);

/* Work on many things in a row, half of it in each of two threads. */

/** Does the work on the things from number `begin` up to `end`, without that. */
typedef enum ttd_status (*halves_function)(void *context, size_t begin, size_t end);

/** Where the second half begins. */
static inline size_t task_halves_middle(size_t count)
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

/* A ring of slots that one thread, the filler, fills, and another, the taker, empties. The slots
 * are the caller's: number i is in slot i modulo the size. */

struct ring {
    uint64_t size;
    /** Number of slots ever filled, changed by the filler only; and ever emptied, by the taker
     * only. */
    _Atomic uint64_t head;
    _Atomic uint64_t tail;
    /** Locked only by a side that has to wait, and to wake it. */
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    pthread_cond_t emptied;
    _Atomic bool filler_waits;
    _Atomic bool taker_waits;
    /** A side has ended: the other one does not wait for it any more. */
    _Atomic bool filler_ended;
    _Atomic bool taker_ended;
};

void ring_init(struct ring *ring, uint64_t size);
void ring_destroy(struct ring *ring);

/** Counts the filled slots. The other side's count may have moved on since. */
static inline uint64_t ring_count(const struct ring *ring)
{
    uint64_t tail = atomic_load(&ring->tail);
    return atomic_load(&ring->head) - tail;
}

/* ---- The filler ---- */

/** Hands over the filled slot at `head`, then waits until at most `tolerated` slots are filled, or
 * the taker has ended. Returns whether it has not. */
bool ring_fill(struct ring *ring, uint64_t tolerated);

void ring_end_filling(struct ring *ring);

/* ---- The taker ---- */

/** Waits until the slot at `tail` is filled, or the filler has ended. Returns whether it is
 * filled. */
bool ring_wait_filled(struct ring *ring);

/** Gives back the slot at `tail`. */
void ring_empty(struct ring *ring);

void ring_end_taking(struct ring *ring);

#endif
