/* SPDX-License-Identifier: MIT */
#include "cli/process/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/process/message.h"

/* A timer takes no more: some eight years. */
#define SECONDS_MAX UINT64_C(0xfffffff)

static struct interrupt_work interrupt_now;
static const struct output_file *volatile interrupt_file;
static volatile sig_atomic_t interrupt_why;
static struct sigaction interrupt_old_alarm, interrupt_old_key;

/* Ends the process as a failed command ends, from a signal handler. */
_Noreturn static void interrupt_exit(void)
{
    const struct output_file *output = interrupt_file;
    if (output && output->temporary)
        unlink(output->temporary);
    if (write(STDERR_FILENO, interrupt_now.message, strlen(interrupt_now.message)) < 0)
        _exit(STATUS_INTERNAL);
    if (output && output->pager) {
        close(output->text.descriptor);
        while (waitpid(output->pager, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    _exit(STATUS_INTERNAL);
}

static void interrupt_handle(int signal)
{
    int error = errno;
    if (signal == SIGALRM && interrupt_why == INTERRUPT_DEADLINE)
        interrupt_exit();
    interrupt_why = signal == SIGALRM ? INTERRUPT_DEADLINE : INTERRUPT_USER;
    if (interrupt_now.notify)
        interrupt_now.notify(interrupt_now.context);
    errno = error;
}

void interrupt_begin(const struct interrupt_work *work)
{
    /* A key interrupts a read from the terminal. */
    struct sigaction action = {.sa_handler = interrupt_handle};
    sigemptyset(&action.sa_mask);
    interrupt_now = *work;
    interrupt_file = NULL;
    interrupt_why = INTERRUPT_NONE;
    if (work->is_for_user)
        sigaction(SIGINT, &action, &interrupt_old_key);
    if (!work->seconds || work->seconds > SECONDS_MAX) {
        interrupt_now.seconds = 0;
        return;
    }
    struct itimerval timer = {.it_value.tv_sec = (time_t)work->seconds,
                              .it_interval.tv_sec = INTERRUPT_GRACE};
    sigset_t alarms;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &interrupt_old_alarm);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

void interrupt_end(void)
{
    static const struct itimerval none;
    interrupt_file = NULL;
    if (interrupt_now.seconds) {
        setitimer(ITIMER_REAL, &none, NULL);
        sigaction(SIGALRM, &interrupt_old_alarm, NULL);
    }
    if (interrupt_now.is_for_user)
        sigaction(SIGINT, &interrupt_old_key, NULL);
    interrupt_now = (struct interrupt_work){.notify = NULL};
    interrupt_why = INTERRUPT_NONE;
}

void interrupt_output(const struct output_file *output)
{
    interrupt_file = output;
}

enum interrupt_cause interrupt_cause(void)
{
    return (enum interrupt_cause)interrupt_why;
}
