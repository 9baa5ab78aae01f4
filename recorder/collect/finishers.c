/* SPDX-License-Identifier: MIT */
#include "finishers.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../symbolize/cache.h"
#include "../symbolize/clock.h"
#include "messages.h"

/* So many frames are named in some milliseconds if their answers are known. */
enum { QUICK_FRAMES = 10000 };

enum { BRIEFLY_NS = 1000 * 1000 };

/* How long others are waited for that ask for names. */
enum { PATIENCE_MS = 2000 };

void finishers_init(struct finishers *finishers)
{
    *finishers = (struct finishers){.names = symbolize_cache_new()};
}

void finishers_free(struct finishers *finishers)
{
    symbolize_cache_free(finishers->names);
}

/* Takes note that a process has ended. */
static void remove_one(struct finishers *finishers, size_t index, int status)
{
    finishers->failures += status != 0;
    finishers->pids[index] = finishers->pids[--finishers->count];
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static void wait_for_one(struct finishers *finishers)
{
    remove_one(finishers, 0, wait_for(finishers->pids[0]));
}

static void on_signal(int number)
{
    (void)number;
    symbolize_stop();
}

/* Signals are passed on to the program by one process only; who sends one to the whole process
 * group does not mean this process. */
static void set_signals(void)
{
    static const int standard[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGSYS,
                                   SIGABRT, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD};
    for (int number = 1; number <= SIGRTMAX; number++)
        signal(number, SIG_IGN);
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
        signal(standard[i], SIG_DFL);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, NULL);
}

static bool finish(struct finishers *finishers, struct trace *trace, const struct ttd_end *end)
{
    bool whole = trace_finish(trace, end, finishers->names);
    if (!whole && message_is_first(MESSAGE_NOT_WHOLE, message_reason(&trace->error)))
        message_error(trace->path, &trace->error);
    return whole;
}

static void finish_here(struct finishers *finishers, struct trace *trace, const struct ttd_end *end)
{
    finishers->failures += !finish(finishers, trace, end);
    trace_free(trace);
}

/* Whether there are so many frames that to name them takes a while, even with known answers. */
static bool is_large(const struct trace *trace)
{
    return trace->modules.frame_count > QUICK_FRAMES;
}

/* Writes the names that are known, if that takes moments only. False if some are missing. */
static bool name_quickly(struct finishers *finishers, struct trace *trace)
{
    return trace->writer == NULL ||
           (!is_large(trace) && trace_write_known_names(trace, finishers->names) == 0);
}

/* Whether names are being looked up, and not for too long already. */
static bool is_preparing(const struct finishers *finishers)
{
    return symbolize_is_preparing(finishers->names) &&
           milliseconds() - finishers->asked_at < PATIENCE_MS;
}

/* Has names looked up that a trace needs. False if that is not possible, or not now. */
static bool ask(struct finishers *finishers, struct trace *trace)
{
    if (!trace_prepare(trace, finishers->names))
        return false;
    finishers->asked_at = milliseconds();
    return true;
}

/* Whether a trace waits for the names that are being looked up. Each is asked for once. */
static bool waits(struct finishers *finishers, struct unfinished *unfinished)
{
    if (unfinished->was_asked || is_large(unfinished->trace))
        return false;
    unfinished->was_asked = true;
    return ask(finishers, unfinished->trace);
}

/* Closes a trace: when its names are known, or in a process of its own if that is in vain. False if
 * there is something to wait for. */
static bool begin(struct finishers *finishers, struct unfinished *unfinished)
{
    struct trace *trace = unfinished->trace;
    const struct ttd_end *end = &unfinished->end;
    bool is_coming = !is_large(trace) && is_preparing(finishers); /* before it is looked for */
    if (name_quickly(finishers, trace)) {
        finish_here(finishers, trace, end);
        return true;
    }
    if (is_coming || waits(finishers, unfinished) || finishers->count == FINISHERS_AT_ONCE)
        return false;
    trace_flush(trace); /* nothing is left that both would write */
    pid_t pid = fork();
    if (pid == 0) {
        set_signals();
        _exit(finish(finishers, trace, end) ? 0 : 1);
    }
    if (pid < 0) {
        finish_here(finishers, trace, end);
        return true;
    }
    finishers->pids[finishers->count++] = pid;
    trace_abandon(trace);
    return true;
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

void finishers_prepare(struct finishers *finishers, struct trace *trace)
{
    if (symbolize_is_preparing(finishers->names))
        return;
    trace->frames_prepared = trace->modules.frame_count;
    ask(finishers, trace);
}

static struct unfinished *oldest(struct finishers *finishers)
{
    return &finishers->waiting[finishers->first];
}

static void remove_oldest(struct finishers *finishers)
{
    finishers->first = (finishers->first + 1) % FINISHERS_WAITING;
    finishers->waiting_count--;
}

bool finishers_step(struct finishers *finishers)
{
    if (finishers->waiting_count == 0)
        return false;
    look(finishers);
    if (!begin(finishers, oldest(finishers)))
        return false;
    remove_oldest(finishers);
    return true;
}

static void sleep_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = BRIEFLY_NS}, NULL);
}

bool finishers_have_room(struct finishers *finishers)
{
    if (finishers->waiting_count < FINISHERS_WAITING || finishers_step(finishers))
        return true;
    sleep_briefly();
    return false;
}

void finishers_take(struct finishers *finishers, struct trace *trace, const struct ttd_end *end)
{
    (void)name_quickly(finishers, trace); /* goes into the same chunks */
    trace_flush(trace);                   /* whatever happens to us before it is closed */
    size_t last = (finishers->first + finishers->waiting_count++) % FINISHERS_WAITING;
    finishers->waiting[last] = (struct unfinished){trace, *end, false};
    finishers_step(finishers);
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
    while (*interrupts == before && finishers->count + finishers->waiting_count > 0) {
        siginfo_t ended;
        if (finishers_step(finishers))
            continue;
        if (finishers->waiting_count > 0) /* for any of the processes */
            sleep_briefly();
        else if (waitid(P_PID, (id_t)finishers->pids[0], &ended, WEXITED | WNOWAIT) == 0)
            wait_for_one(finishers);
    }
    for (size_t i = 0; i < finishers->count; i++)
        kill(finishers->pids[i], SIGTERM);
    while (finishers->count > 0)
        wait_for_one(finishers);
    if (finishers->waiting_count > 0)
        symbolize_stop();
    for (; finishers->waiting_count > 0; remove_oldest(finishers))
        finish_here(finishers, oldest(finishers)->trace, &oldest(finishers)->end);
}
