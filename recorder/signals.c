/* SPDX-License-Identifier: MIT */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "snapshot/stop/threads.h"

enum { WATCH_NS = 20 * 1000 * 1000 };

struct signals signals_seen;

static pid_t program_pid;
static int program_pidfd = -1; /* the process id may be another's once the program has ended */
static volatile sig_atomic_t wants_stop;
static volatile sig_atomic_t was_stopped; /* by signals_stop(), and not gone on since */
static volatile pid_t watcher_pid;

static bool signals_is_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
           number == SIGTRAP || number == SIGSYS || number == SIGABRT;
}

static bool signals_is_stop(int number)
{
    return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

/* Whether a signal comes from the system: it is for the whole group, or due to our own actions. */
static bool signals_is_not_for_the_program(int number)
{
    static const int numbers[] = {SIGINT,  SIGQUIT,  SIGHUP,  SIGTSTP, SIGTTIN, SIGTTOU,
                                  SIGCONT, SIGWINCH, SIGPIPE, SIGXFSZ, SIGXCPU, SIGCHLD};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

static void signals_send(int number, siginfo_t *info)
{
    /* A signal with a value keeps value and sender; one without has us as its sender. */
    siginfo_t *signal_info = info->si_code == SI_QUEUE ? info : NULL;
    if (program_pidfd >= 0)
        syscall(SYS_pidfd_send_signal, program_pidfd, number, signal_info, 0);
    else if (signal_info)
        syscall(SYS_rt_sigqueueinfo, program_pid, number, signal_info);
    else
        kill(program_pid, number);
}

static bool signals_program_is_stopped(void)
{
    return threads_state_of((uint32_t)program_pid, (uint32_t)program_pid) == 'T';
}

/* A shell lets a stopped process group go on: the program has had the signal then, unless it was
 * sent to us alone. */
static void signals_pass_on_continue(siginfo_t *info, bool is_sent)
{
    bool stood = was_stopped;
    wants_stop = was_stopped = false;
    /* The watcher has seen the program go on: one that is stopped was stopped anew. */
    if (is_sent && info->si_pid == watcher_pid)
        return;
    if (stood ? signals_program_is_stopped() : is_sent)
        signals_send(SIGCONT, info);
}

static bool signals_program_has_ended(void)
{
    siginfo_t status = {.si_pid = 0};
    return waitid(P_PID, (id_t)program_pid, &status, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           status.si_pid != 0;
}

static void signals_on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    int before = errno;
    bool is_sent = info->si_code <= 0 && info->si_pid != getpid();
    if (signals_is_fault(number) && !is_sent) {
        signal(number, SIG_DFL);
        raise(number);
    } else if (signals_seen.done && signals_is_stop(number)) {
        raise(SIGSTOP);
    } else if (signals_seen.done) {
        signals_seen.detach +=
            number == SIGINT || number == SIGQUIT || number == SIGTERM || number == SIGHUP;
    } else if (number == SIGCONT) {
        signals_pass_on_continue(info, is_sent);
    } else if (number >= SIGRTMIN && signals_program_has_ended()) {
        /* Each is delivered before anything else is done, and any number may wait. */
        signal(number, SIG_IGN);
    } else {
        wants_stop |= signals_is_stop(number);
        if (is_sent || !signals_is_not_for_the_program(number))
            signals_send(number, info);
    }
    errno = before;
}

/* No SIGCHLD comes for each thread that is stopped, for which the recorder waits anyway. */
static void signals_catch_one(int number)
{
    struct sigaction action = {.sa_sigaction = signals_on_signal,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_NOCLDSTOP};
    sigaction(number, &action, NULL);
}

void signals_catch(pid_t program)
{
    sigset_t none;
    program_pid = program;
    program_pidfd = (int)syscall(SYS_pidfd_open, program, 0);
    /* This fails for KILL and STOP, and for the two signals that the C library reserves. */
    for (int number = 1; number <= SIGRTMAX; number++)
        signals_catch_one(number);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

bool signals_want_stop(void)
{
    return wants_stop;
}

/* In a process of its own: wakes the one that is stopped once the program is not stopped any more,
 * as by a SIGCONT that somebody sent to the program alone. It may be about to stop: so repeatedly.
 */
static _Noreturn void signals_watch(pid_t recorder)
{
    const struct timespec pause = {.tv_nsec = WATCH_NS};
    for (int number = 1; number <= SIGRTMAX; number++)
        if (!signals_is_fault(number) && number != SIGCONT)
            signal(number, SIG_IGN);
    signal(SIGCONT, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        _exit(1);
    while (getppid() == recorder) {
        if (!signals_program_is_stopped())
            kill(recorder, SIGCONT);
        nanosleep(&pause, NULL);
    }
    _exit(0);
}

void signals_stop(int number)
{
    pid_t self = getpid(), watcher = fork();
    if (watcher == 0)
        signals_watch(self);
    if (watcher < 0)
        return; /* nobody would wake us */
    watcher_pid = watcher;
    was_stopped = true;
    if (number != SIGSTOP)
        signal(number, SIG_DFL);
    kill(getpid(), number);
    if (number != SIGSTOP)
        signals_catch_one(number);
    kill(watcher, SIGKILL);
    while (waitpid(watcher, NULL, 0) < 0 && errno == EINTR)
        ;
}
