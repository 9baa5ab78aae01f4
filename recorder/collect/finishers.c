/* SPDX-License-Identifier: MIT */
#include "finishers.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../symbolize/cache.h"
#include "messages.h"

void finishers_init(struct finishers *finishers)
{
    *finishers = (struct finishers){.names = symbolize_cache_new()};
}

void finishers_free(struct finishers *finishers)
{
    symbolize_cache_free(finishers->names);
}

static void wait_for_one(struct finishers *finishers)
{
    int status = 0;
    while (waitpid(finishers->pids[0], &status, 0) < 0 && errno == EINTR)
        ;
    finishers->failures += status != 0;
    finishers->pids[0] = finishers->pids[--finishers->count];
}

void finishers_wait(struct finishers *finishers, const volatile sig_atomic_t *interrupts)
{
    static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    sig_atomic_t before = *interrupts;
    struct sigaction action;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], NULL, &action);
        action.sa_flags &= ~SA_RESTART;
        sigaction(numbers[i], &action, NULL);
    }
    while (finishers->count > 0 && *interrupts == before) {
        siginfo_t ended;
        if (waitid(P_PID, (id_t)finishers->pids[0], &ended, WEXITED | WNOWAIT) == 0)
            wait_for_one(finishers);
    }
    for (size_t i = 0; i < finishers->count; i++)
        kill(finishers->pids[i], SIGTERM);
    while (finishers->count > 0)
        wait_for_one(finishers);
}

static void on_signal(int number)
{
    (void)number;
    symbolize_stop();
}

/* Signals are passed on to the program by one process only. */
static void set_signals(void)
{
    static const int ignored[] = {SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, NULL);
}

static bool finish(struct finishers *finishers, struct trace *trace, const ttd_end *end)
{
    bool whole = trace_finish(trace, end, finishers->names);
    if (!whole)
        message_error(trace->path, &trace->error);
    return whole;
}

void finishers_take(struct finishers *finishers, struct trace *trace, const ttd_end *end)
{
    /* Where traces before this had the same addresses, it is a matter of moments. */
    bool is_quick = trace_is_quick(trace, finishers->names);
    if (!is_quick && finishers->count == FINISHERS_AT_ONCE)
        wait_for_one(finishers);
    pid_t pid = is_quick ? -1 : fork();
    if (pid == 0) {
        set_signals();
        _exit(finish(finishers, trace, end) ? 0 : 1);
    }
    if (pid > 0)
        finishers->pids[finishers->count++] = pid;
    else
        finishers->failures += !finish(finishers, trace, end);
    trace_free(trace);
}
