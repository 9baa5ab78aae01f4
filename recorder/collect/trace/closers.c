/* SPDX-License-Identifier: MIT */
#include "collect/trace/closers.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbolize/cache/cache.h"
#include "symbolize/symbolize.h"
#include "messages.h"

/* Writing the cached names of this many frames takes a few milliseconds. A word takes less than a
 * frame: mostly it lies in the same variable as the word before. */
enum { QUICK_FRAMES = 10000, WORDS_PER_FRAME = 16 };

enum { BRIEFLY_NS = 1000 * 1000 };

/* Limit of the wait for a lookup that other traces started. */
enum { PATIENCE_MS = 2000 };

void trace_closers_init(struct trace_closers *closers)
{
    *closers = (struct trace_closers){.names = symbolize_cache_new()};
}

void trace_closers_free(struct trace_closers *closers)
{
    symbolize_cache_free(closers->names);
}

/* Records that a process has ended. */
static void closers_record_exit(struct trace_closers *closers, size_t index, int status)
{
    closers->failures += status != 0;
    closers->unwritten += status != 0;
    closers->pids[index] = closers->pids[--closers->count];
}

static int closers_wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static void closers_wait_for_one(struct trace_closers *closers)
{
    closers_record_exit(closers, 0, closers_wait_for(closers->pids[0]));
}

static void closers_on_signal(int number)
{
    (void)number;
    symbolize_stop();
}

/* Ignores signals to the process group: only the collector passes signals on to the program. */
static void closers_set_signals(void)
{
    static const int standard[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGSYS,
                                   SIGABRT, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD};
    for (int number = 1; number <= SIGRTMAX; number++)
        signal(number, SIG_IGN);
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
        signal(standard[i], SIG_DFL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = closers_on_signal}, NULL);
}

static bool closers_finish(struct trace_closers *closers, struct trace *trace,
                           const struct ttd_end *end)
{
    bool is_whole = trace_finish(trace, end, closers->names);
    if (!is_whole && message_is_first(MESSAGE_NOT_WHOLE, message_reason(&trace->error)))
        message_error(trace->path, &trace->error);
    return is_whole;
}

static void closers_finish_here(struct trace_closers *closers, struct trace *trace,
                                const struct ttd_end *end)
{
    bool is_whole = closers_finish(closers, trace, end);
    closers->failures += !is_whole;
    closers->unwritten += !is_whole && trace->created;
    trace_free(trace);
}

/* Whether writing even cached names would take noticeably long. */
static bool closers_is_large(const struct trace *trace)
{
    return trace->modules.frame_count + trace->variables.count / WORDS_PER_FRAME > QUICK_FRAMES;
}

/* Writes the cached names if that is quick. Returns false if names are missing. */
static bool closers_write_known_names(struct trace_closers *closers, struct trace *trace)
{
    return !trace->writer ||
           (!closers_is_large(trace) && trace_write_known_names(trace, closers->names) == 0);
}

/* Whether a lookup is under way, and has not exceeded PATIENCE_MS. */
static bool closers_is_preparing(const struct trace_closers *closers)
{
    return symbolize_is_preparing(closers->names) &&
           symbolize_milliseconds() - closers->requested_at < PATIENCE_MS;
}

/* Starts a lookup for a trace. Returns false if that is impossible now. */
static bool closers_request_names(struct trace_closers *closers, struct trace *trace)
{
    if (!trace_prepare(trace, closers->names))
        return false;
    closers->requested_at = symbolize_milliseconds();
    return true;
}

/* Starts a lookup for a trace, once. Returns whether the trace is to wait for it. */
static bool closers_waits_for_names(struct trace_closers *closers, struct closing_trace *closing)
{
    if (closing->is_requested || closers_is_large(closing->trace))
        return false;
    closing->is_requested = true;
    return closers_request_names(closers, closing->trace);
}

/* Closes a trace if its names are cached, or else in a process of its own. Returns false if a
 * lookup is worth waiting for. */
static bool close_trace(struct trace_closers *closers, struct closing_trace *closing)
{
    struct trace *trace = closing->trace;
    const struct ttd_end *end = &closing->end;
    bool is_coming = !closers_is_large(trace) &&
                     closers_is_preparing(
                         closers); /* read before the cache is, or an answer in between is missed */
    if (closers_write_known_names(closers, trace)) {
        closers_finish_here(closers, trace, end);
        return true;
    }
    if (is_coming || closers_waits_for_names(closers, closing) ||
        closers->count == TRACE_CLOSERS_MAX)
        return false;
    trace_flush(trace); /* otherwise both processes would write the buffered bytes */
    pid_t pid = fork();
    if (pid == 0) {
        closers_set_signals();
        _exit(closers_finish(closers, trace, end) ? 0 : 1);
    }
    if (pid < 0) {
        closers_finish_here(closers, trace, end);
        return true;
    }
    closers->pids[closers->count++] = pid;
    trace_abandon(trace);
    return true;
}

/* Records the processes that have ended. */
static void reap_closers(struct trace_closers *closers)
{
    for (size_t i = closers->count; i-- > 0;) {
        int status = 0;
        if (waitpid(closers->pids[i], &status, WNOHANG) == closers->pids[i])
            closers_record_exit(closers, i, status);
    }
}

void trace_closers_prepare(struct trace_closers *closers, struct trace *trace)
{
    if (symbolize_is_preparing(closers->names))
        return;
    trace->frames_prepared = trace->modules.frame_count;
    closers_request_names(closers, trace);
}

static struct closing_trace *closers_oldest(struct trace_closers *closers)
{
    return &closers->waiting[closers->first];
}

static void closers_drop_oldest(struct trace_closers *closers)
{
    closers->first = (closers->first + 1) % TRACE_CLOSERS_WAITING;
    closers->waiting_count--;
}

bool trace_closers_step(struct trace_closers *closers)
{
    if (closers->waiting_count == 0)
        return false;
    reap_closers(closers);
    if (!close_trace(closers, closers_oldest(closers)))
        return false;
    closers_drop_oldest(closers);
    return true;
}

static void closers_sleep_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = BRIEFLY_NS}, NULL);
}

bool trace_closers_have_room(struct trace_closers *closers)
{
    if (closers->waiting_count < TRACE_CLOSERS_WAITING || trace_closers_step(closers))
        return true;
    closers_sleep_briefly();
    return false;
}

void trace_closers_add(struct trace_closers *closers, struct trace *trace,
                       const struct ttd_end *end)
{
    (void)closers_write_known_names(closers, trace); /* names share chunks with the last records */
    trace_flush(trace); /* in case this process is killed before the trace is closed */
    size_t last = (closers->first + closers->waiting_count++) % TRACE_CLOSERS_WAITING;
    closers->waiting[last] = (struct closing_trace){trace, *end, false};
    trace_closers_step(closers);
}

void trace_closers_wait(struct trace_closers *closers, const volatile sig_atomic_t *interrupts)
{
    static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    sig_atomic_t before = *interrupts;
    struct sigaction action;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], NULL, &action);
        action.sa_flags &= ~SA_RESTART;
        sigaction(numbers[i], &action, NULL);
    }
    while (*interrupts == before && closers->count + closers->waiting_count > 0) {
        siginfo_t status;
        if (trace_closers_step(closers))
            continue;
        if (closers->waiting_count > 0) /* for any of the processes */
            closers_sleep_briefly();
        else if (waitid(P_PID, (id_t)closers->pids[0], &status, WEXITED | WNOWAIT) == 0)
            closers_wait_for_one(closers);
    }
    for (size_t i = 0; i < closers->count; i++)
        kill(closers->pids[i], SIGTERM);
    while (closers->count > 0)
        closers_wait_for_one(closers);
    if (closers->waiting_count > 0)
        symbolize_stop();
    for (; closers->waiting_count > 0; closers_drop_oldest(closers))
        closers_finish_here(closers, closers_oldest(closers)->trace, &closers_oldest(closers)->end);
}
