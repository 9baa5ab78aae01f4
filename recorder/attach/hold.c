/* SPDX-License-Identifier: MIT */
#include "attach/attach.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "quiet_thread.h"

enum {
    STOP_EVENT = 128, /* PTRACE_EVENT_STOP; not all headers have it */
    CALL_STOP = SIGTRAP | 0x80,
    CALLS_MAX = 1000, /* system calls before the first thread is set up: there are few */
    TICK_NS = 1000000,
};

/* How the program stopped. */
struct hold_stop {
    int event;
    int signal;
};

/* Waits until the program stops, and leaves its status for other waits. Returns false if the
 * program has ended. */
static bool hold_await(const struct attach_hold *hold, struct hold_stop *stop)
{
    siginfo_t info = {0};
    while (waitid(P_PID, hold->pid, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL) != 0)
        if (errno != EINTR)
            return false;
    if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
        return false;
    *stop = (struct hold_stop){info.si_status >> 8, info.si_status & 0xff};
    return true;
}

/* Lets the program go on after a stop that is not the awaited one: with the signal of the stop, or
 * still stopped by job control. */
static bool hold_go_on(const struct attach_hold *hold, enum __ptrace_request request,
                       const struct hold_stop *stop)
{
    bool is_of_group = stop->event == STOP_EVENT && stop->signal != SIGTRAP;
    bool is_signal = stop->event == 0 && stop->signal != CALL_STOP;
    if (is_of_group)
        request = PTRACE_LISTEN;
    return ptrace(request, (pid_t)hold->pid, NULL,
                  (void *)(intptr_t)(is_signal ? stop->signal : 0)) == 0;
}

static void hold_await_program(void *context)
{
    struct attach_hold *hold = context;
    struct hold_stop stop;
    hold->is_stopped = false;
    while (hold_await(hold, &stop)) {
        hold->is_stopped = stop.event == PTRACE_EVENT_EXEC;
        if (hold->is_stopped || !hold_go_on(hold, PTRACE_CONT, &stop))
            return;
    }
}

/* Whether the program stands behind the call that announces the list of a thread's mutexes: glibc
 * makes this call once the thread has its control block with its id. Other C libraries make it
 * later, if at all. */
static bool hold_has_thread(const struct attach_hold *hold)
{
    struct user_regs_struct registers;
    struct iovec buffer = {&registers, sizeof registers};
    return ptrace(PTRACE_GETREGSET, (pid_t)hold->pid, (void *)NT_PRSTATUS, &buffer) == 0 &&
           registers.orig_rax == SYS_set_robust_list && registers.rax == 0 &&
           registers.fs_base != 0;
}

/* Makes the held thread stop at its return to its own code, as if it had been interrupted. */
static bool hold_interrupt(const struct attach_hold *hold)
{
    struct hold_stop stop = {.event = STOP_EVENT, .signal = SIGTRAP};
    if (ptrace(PTRACE_INTERRUPT, (pid_t)hold->pid, NULL, NULL) != 0)
        return false;
    do {
        if (!hold_go_on(hold, PTRACE_CONT, &stop) || !hold_await(hold, &stop))
            return false;
    } while (stop.event != STOP_EVENT || stop.signal != SIGTRAP);
    return true;
}

static void hold_await_thread(void *context)
{
    struct attach_hold *hold = context;
    struct hold_stop stop = {.event = PTRACE_EVENT_EXEC};
    bool has_thread = false;
    hold->is_stopped = false;
    for (int calls = 0; calls < 2 * CALLS_MAX && !has_thread; calls++) {
        if (!hold_go_on(hold, PTRACE_SYSCALL, &stop) || !hold_await(hold, &stop))
            return;
        has_thread = stop.event == 0 && stop.signal == CALL_STOP && hold_has_thread(hold);
    }
    hold->is_stopped = has_thread && hold_interrupt(hold) &&
                       threads_adopt(&hold->threads, hold->pid, hold->interrupted);
}

static void *hold_trace(void *context)
{
    struct attach_hold *hold = context;
    void *options = (void *)(intptr_t)(PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD);
    hold->is_traced = ptrace(PTRACE_SEIZE, (pid_t)hold->pid, NULL, options) == 0;
    sem_post(&hold->done);
    if (!hold->is_traced)
        return NULL;
    hold_await_program(hold); /* meanwhile it executes it: signals may stop it before */
    sem_post(&hold->done);
    for (;;) {
        while (sem_wait(&hold->asked) != 0) {
        }
        if (!hold->work)
            break;
        hold->work(hold->context);
        sem_post(&hold->done);
    }
    if (hold->threads.count != 0)
        threads_release(&hold->threads);
    else
        ptrace(PTRACE_DETACH, (pid_t)hold->pid, NULL, NULL);
    return NULL;
}

static void hold_await_done(struct attach_hold *hold)
{
    while (sem_wait(&hold->done) != 0) {
    }
}

bool attach_hold_begin(struct attach_hold *hold, uint32_t pid,
                       struct interrupted_calls *interrupted)
{
    *hold = (struct attach_hold){.pid = pid, .interrupted = interrupted};
    sem_init(&hold->asked, 0, 0);
    sem_init(&hold->done, 0, 0);
    if (!quiet_thread_start(&hold->thread, hold_trace, hold))
        return false;
    hold_await_done(hold);
    if (!hold->is_traced)
        pthread_join(hold->thread, NULL);
    return hold->is_traced;
}

bool attach_hold_program(struct attach_hold *hold)
{
    hold_await_done(hold);
    return hold->is_stopped;
}

const char *attach_hold_thread(struct attach_hold *hold)
{
    attach_hold_do(hold, hold_await_thread, hold, NULL, NULL);
    return hold->is_stopped ? NULL : "it does not start as programs of the GNU C library do";
}

void attach_hold_do(struct attach_hold *hold, void (*work)(void *context), void *context,
                    void (*tick)(void *context), void *tick_context)
{
    const struct timespec moment = {.tv_nsec = TICK_NS};
    hold->work = work;
    hold->context = context;
    sem_post(&hold->asked);
    while (tick && sem_trywait(&hold->done) != 0) {
        tick(tick_context);
        nanosleep(&moment, NULL);
    }
    if (!tick)
        hold_await_done(hold);
}

void attach_hold_end(struct attach_hold *hold)
{
    hold->work = NULL;
    sem_post(&hold->asked);
    pthread_join(hold->thread, NULL);
    sem_destroy(&hold->asked);
    sem_destroy(&hold->done);
}
