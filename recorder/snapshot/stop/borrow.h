/* SPDX-License-Identifier: MIT */
/** Makes a thread that is held execute one system call, and puts it back where it was. */
#ifndef RECORDER_SNAPSHOT_STOP_BORROW_H
#define RECORDER_SNAPSHOT_STOP_BORROW_H

#include "channel.h"
#include "snapshot/stop/threads.h"

struct borrowed_call {
    const struct borrowed_code *code;
    bool makes_process; /* by clone without CLONE_VM */
    uint64_t number;
    uint64_t arguments[6];
    /** Results. */
    int64_t result;
    uint32_t created; /* the process that was made, as this process sees it; or 0 */
};

enum borrow_result {
    BORROW_DONE,    /* the call was made, whatever its result */
    BORROW_REFUSED, /* not with this thread at this moment; nothing has happened */
    BORROW_RUNS_ON  /* the thread has not come back in time: it goes on as soon as it can */
};

/**
 * Makes a stopped thread execute a call. Refuses if the thread must not: a filter of system calls
 * watches it, its place in the code would not survive, its process is stopped by job control, or a
 * signal comes first. The process is stopped otherwise. Except after BORROW_RUNS_ON the thread is
 * still held; it may have a signal to be delivered.
 */
enum borrow_result borrow_call(const struct threads *threads, struct thread_state *thread,
                               struct borrowed_call *call);

/** Makes any of the threads that can execute a call. They are not all stopped any more after
 * BORROW_RUNS_ON, and no other call may be made. */
enum borrow_result borrow_by_any(struct threads *threads, struct borrowed_call *call);

/**
 * Code that makes several calls, with all signals blocked from the first on. When it is over, it
 * sets a word to BORROWED_RUN_OVER, waits for a second to be taken away, or else returns by the
 * frame on its stack: borrow_run() then says that the thread runs on.
 */
struct borrowed_run {
    const struct borrowed_code *code;
    uint64_t entry;
    uint64_t over; /* address of the word; it has another value at first */
};

/** Makes a stopped thread execute it, as borrow_call() does a call. */
enum borrow_result borrow_run(const struct threads *threads, struct thread_state *thread,
                              struct borrowed_run *run);

#endif
