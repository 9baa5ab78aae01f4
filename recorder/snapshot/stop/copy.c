/* SPDX-License-Identifier: MIT */
#include "snapshot/stop/copy.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APPEAR_NS UINT64_C(1000000000)
#define END_NS    UINT64_C(5000000000)
#define POLL_NS   20000

static uint64_t copy_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Makes any thread that can execute a call. Returns whether one did. */
static bool call_by_any(struct threads *threads, struct borrowed_call *call,
                        struct copy_history *history)
{
    enum borrow_result result = borrow_by_any(threads, call);
    history->is_barred |= result == BORROW_RUNS_ON;
    return result == BORROW_DONE;
}

/* Waits for the dead copy as its parent, so that nothing of it is left. */
static void bury(struct threads *threads, const struct borrowed_code *code,
                 struct copy_history *history)
{
    struct borrowed_call call = {
        .code = code, .number = SYS_wait4, .arguments = {history->dead, 0, __WALL | WNOHANG, 0}};
    if (history->dead != 0 && !history->is_barred && call_by_any(threads, &call, history))
        history->dead = 0;
}

/* Waits for the process `pid` to stop, or to end, with the flags of waitid(). */
static bool copy_await(uint32_t pid, int flags, uint64_t limit)
{
    const struct timespec moment = {.tv_nsec = POLL_NS};
    siginfo_t info = {0};
    for (uint64_t begin = copy_now(); copy_now() - begin < limit; nanosleep(&moment, NULL)) {
        if (waitid(P_PID, pid, &info, flags | WNOHANG | __WALL) != 0)
            return false;
        if (info.si_pid != 0)
            return true;
    }
    return false;
}

/* Lets the system end the copy rather than the process, if memory runs out. */
static void offer(uint32_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/oom_score_adj", pid);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return;
    (void)!write(file, "1000", 4);
    close(file);
}

/* Gives the copy a table of descriptors of its own, an empty one. The table that it shares with the
 * process costs nothing to make, but if the process executes a program meanwhile, the copy would be
 * left with its record locks, and with the files that are to be closed then. */
static void leave_files(const struct copy *copy, const struct borrowed_code *code)
{
    struct threads threads = {.pid = copy->pid};
    struct thread_state thread = {.tid = copy->pid, .is_seized = true, .is_stopped = true};
    struct borrowed_call call = {
        .code = code, .number = SYS_close_range, .arguments = {0, ~0U, CLOSE_RANGE_UNSHARE}};
    borrow_call(&threads, &thread, &call);
}

static void end_now(const struct copy *copy)
{
    kill((pid_t)copy->pid, SIGKILL);
    copy_await(copy->pid, WEXITED | WNOWAIT, END_NS);
}

bool copy_make(struct copy *copy, struct threads *threads, const struct borrowed_code *code,
               struct copy_history *history)
{
    void *options = (void *)(intptr_t)PTRACE_O_EXITKILL;
    struct borrowed_call call = {.code = code,
                                 .makes_process = true,
                                 .number = SYS_clone,
                                 .arguments = {CLONE_FILES /* and no signal at its end */}};
    *copy = (struct copy){0};
    if (!threads->are_stopped || code->stack_end == 0)
        return false;
    bury(threads, code, history);
    if (history->is_barred || history->dead != 0)
        return false;
    bool is_called = call_by_any(threads, &call, history);
    if (call.created == 0)
        return false;
    *copy = (struct copy){call.created, is_called && call.result > 0 ? (uint32_t)call.result : 0};
    if (is_called && copy_await(copy->pid, WSTOPPED | WNOWAIT, APPEAR_NS)) {
        leave_files(copy, code);
        if (ptrace(PTRACE_SETOPTIONS, (pid_t)copy->pid, NULL, options) == 0) {
            offer(copy->pid);
            return true;
        }
    }
    history->is_barred = true;
    copy_drop(copy, threads, code, history);
    return false;
}

void copy_drop(struct copy *copy, struct threads *threads, const struct borrowed_code *code,
               struct copy_history *history)
{
    if (copy->pid == 0)
        return;
    end_now(copy);
    copy_await(copy->pid, WEXITED, END_NS);
    history->dead = copy->inner;
    bury(threads, code, history);
    *copy = (struct copy){0};
}

uint64_t copy_end(struct copy *copy, const struct borrowed_code *code, struct copy_history *history,
                  uint32_t pid, uint32_t child, struct interrupted_calls *interrupted)
{
    struct threads threads;
    if (copy->pid == 0)
        return 0;
    end_now(copy);
    uint64_t begin = copy_now();
    /* Its parent may wait for it only now, and only here. */
    threads_stop_some(&threads, pid, child, interrupted);
    copy_drop(copy, &threads, code, history);
    threads_release(&threads);
    return copy_now() - begin;
}
