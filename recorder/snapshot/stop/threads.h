/* SPDX-License-Identifier: MIT */
/**
 * Stops the threads of another process, and lets them go on as if nothing had happened. All
 * functions must be called by the same thread; it should end soon after: the system then frees
 * threads that could not be freed, because they have not stopped in time.
 */
#ifndef RECORDER_SNAPSHOT_STOP_THREADS_H
#define RECORDER_SNAPSHOT_STOP_THREADS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

/*
 * System calls that fail when their thread is stopped, even if it has no handler of a signal: they
 * are made again, or end as if their time had passed once it has.
 */

/** Calls of a process that were made again, kept from one stop to the next. Zeroed at first. */
struct interrupted_calls {
    struct interrupted_call {
        uint32_t tid;
        uint64_t since; /* when a stop first interrupted the call */
    } * items;
    size_t count, capacity;
};

void interrupted_calls_free(struct interrupted_calls *calls);

/**
 * Changes the registers of a stopped thread without waiting signals, if its call has failed only
 * because of the stop. `now` is a time in nanoseconds. Returns whether the registers have changed.
 */
bool interrupted_call_resume(struct interrupted_calls *calls, uint32_t pid, uint32_t tid,
                             uint64_t now, struct user_regs_struct *registers);

enum { THREAD_REGISTERS = 17 /* DWARF numbers 0 to 16 of x86-64 */ };

/** The status of a thread that stops at the begin or the end of a system call. It looks as a signal
 * does, and is none: PTRACE_O_TRACESYSGOOD. */
enum { THREAD_CALL_STOP = SIGTRAP | 0x80 };

struct thread_state {
    uint32_t tid;
    bool is_seized;
    bool is_stopped; /* the rest is set */
    bool has_ended;
    bool is_paused;    /* it would not run anyway, as SIGSTOP has it */
    bool is_looked_at; /* the caller's; false again once the thread goes on */
    int signal;        /* that stopped it, and is yet to be delivered; or 0 */
    uint64_t thread_pointer;
    uint64_t registers[THREAD_REGISTERS];
};

struct threads {
    uint32_t pid;
    uint32_t except;
    uint32_t child;
    struct interrupted_calls *interrupted;
    struct thread_state *items; /* sorted by tid */
    size_t count, capacity;
    bool are_stopped; /* all of them, but for the one excepted */
    bool are_some;    /* there may be others; they run */
    uint64_t begin;   /* when the first one was interrupted, in nanoseconds; 0 for never */
    bool hurries;     /* see threads_hurry() */
    int niceness;     /* of the calling thread before */
    /** Set by the caller: calls that threads are made to make pass their seccomp filters (permitted
     * to privileged processes). Should the tracer die meanwhile, a filter may end the process. */
    bool suspends_filters;
};

/** Number of the register of the stack pointer. */
enum { THREAD_STACK_POINTER = 7 };

/** Returns the state of a thread as the system names it, such as 'S'; 0 if there is no such thread.
 * May be called by a handler of a signal. */
char threads_state_of(uint32_t pid, uint32_t tid);

/** Whether a thread has ended, or runs no code of its program any more. */
bool threads_is_ending(uint32_t pid, uint32_t tid);

/** Whether a process has no other thread than `tid`, so that none needs to be stopped. */
bool threads_is_alone(uint32_t pid, uint32_t tid);

/**
 * Stops all threads of a process but the thread `except` (may be 0). `child` is a process whose
 * exit status must be left to wait for, or 0. Threads that another process traces, or that do not
 * stop for a second, go on: then `are_stopped` is false. `interrupted` is the same at each stop of
 * the process.
 */
void threads_stop(struct threads *threads, uint32_t pid, uint32_t except, uint32_t child,
                  struct interrupted_calls *interrupted);

/** Has the calling thread run before others, if the system permits it, until threads_release(): the
 * stopped threads wait for work that is short. Stopping and releasing hurries by itself: threads
 * that were let go would run first, while others still wait for it. */
void threads_hurry(struct threads *threads);

/** Lets a stopped thread go on. Does nothing to a thread of a process that was stopped anyway. */
void threads_let_on(struct thread_state *thread);

/** Whether all threads of the process are stopped, as their number says. */
bool threads_are_all(const struct threads *threads);

/** Stops threads that were let on, and those that they have started, after a pause of less than a
 * second, in nanoseconds. */
void threads_stop_again(struct threads *threads, long pause);

/** Stops a few threads only; they can be made to make calls. `are_stopped` is true if any was
 * stopped, and `items` has no others. */
void threads_stop_some(struct threads *threads, uint32_t pid, uint32_t child,
                       struct interrupted_calls *interrupted);

/** Takes over the only thread of a child of this process: the calling thread traces it, and it is
 * stopped as by threads_stop(). Returns false if there is no memory. */
bool threads_adopt(struct threads *threads, uint32_t child, struct interrupted_calls *interrupted);

/** Lets all threads go on, and frees the list. */
void threads_release(struct threads *threads);

#endif
