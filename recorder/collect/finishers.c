/* SPDX-License-Identifier: MIT */
#include "finishers.h"

#include <errno.h>
#include <stdlib.h>
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
    free(finishers->waiting);
}

/* Takes note that a process has ended. */
static void remove_one(struct finishers *finishers, size_t index, int status)
{
    finishers->failures += status != 0;
    finishers->pids[index] = finishers->pids[--finishers->count];
}

static void wait_for_one(struct finishers *finishers)
{
    int status = 0;
    while (waitpid(finishers->pids[0], &status, 0) < 0 && errno == EINTR)
        ;
    remove_one(finishers, 0, status);
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

static void finish_here(struct finishers *finishers, struct trace *trace, const ttd_end *end)
{
    finishers->failures += !finish(finishers, trace, end);
    trace_free(trace);
}

/* Closes a trace: at once where traces before it had the same addresses, which is a matter of
 * moments; else in a process of its own. False if there are enough of them. */
static bool begin(struct finishers *finishers, struct trace *trace, const ttd_end *end)
{
    bool is_quick = trace_is_quick(trace, finishers->names);
    if (!is_quick && finishers->count == FINISHERS_AT_ONCE)
        return false;
    pid_t pid = is_quick ? -1 : fork();
    if (pid == 0) {
        set_signals();
        _exit(finish(finishers, trace, end) ? 0 : 1);
    }
    if (pid > 0) {
        finishers->pids[finishers->count++] = pid;
        trace_free(trace);
    } else {
        finish_here(finishers, trace, end);
    }
    return true;
}

static bool is_any_waiting(const struct finishers *finishers)
{
    return finishers->first < finishers->waiting_count;
}

/* False without memory. */
static bool put_off(struct finishers *finishers, struct trace *trace, const ttd_end *end)
{
    if (finishers->waiting_count == finishers->waiting_capacity) {
        size_t capacity = finishers->waiting_capacity * 2 + 8;
        void *waiting = reallocarray(finishers->waiting, capacity, sizeof *finishers->waiting);
        if (waiting == NULL)
            return false;
        finishers->waiting = waiting;
        finishers->waiting_capacity = capacity;
    }
    finishers->waiting[finishers->waiting_count++] = (struct unfinished){trace, *end};
    return true;
}

void finishers_take(struct finishers *finishers, struct trace *trace, const ttd_end *end)
{
    trace_flush(trace); /* whatever happens to us before it is closed */
    if (!is_any_waiting(finishers))
        finishers->first = finishers->waiting_count = 0;
    else if (put_off(finishers, trace, end))
        return;
    while (!begin(finishers, trace, end)) {
        if (put_off(finishers, trace, end))
            return;
        wait_for_one(finishers);
    }
}

/* Takes note of the processes that have ended. */
static void look(struct finishers *finishers)
{
    for (size_t i = finishers->count; i-- > 0;) {
        int status = 0;
        if (waitpid(finishers->pids[i], &status, WNOHANG) == finishers->pids[i])
            remove_one(finishers, i, status);
    }
}

void finishers_step(struct finishers *finishers)
{
    if (!is_any_waiting(finishers))
        return;
    look(finishers);
    const struct unfinished *next = &finishers->waiting[finishers->first];
    finishers->first += begin(finishers, next->trace, &next->end);
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
    while (*interrupts == before && (finishers->count > 0 || is_any_waiting(finishers))) {
        siginfo_t ended;
        finishers_step(finishers);
        if (is_any_waiting(finishers) && finishers->count < FINISHERS_AT_ONCE)
            continue;
        if (finishers->count > 0 &&
            waitid(P_PID, (id_t)finishers->pids[0], &ended, WEXITED | WNOWAIT) == 0)
            wait_for_one(finishers);
    }
    for (size_t i = 0; i < finishers->count; i++)
        kill(finishers->pids[i], SIGTERM);
    while (finishers->count > 0)
        wait_for_one(finishers);
    if (is_any_waiting(finishers))
        symbolize_stop();
    for (; is_any_waiting(finishers); finishers->first++)
        finish_here(finishers, finishers->waiting[finishers->first].trace,
                    &finishers->waiting[finishers->first].end);
}
