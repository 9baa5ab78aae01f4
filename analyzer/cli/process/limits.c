/* SPDX-License-Identifier: MIT */
#include "cli/process/limits.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/numbers.h"
#include "cli/process/message.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define HAS_SHADOW 1
#endif
#endif

/* The limit of this process in bytes, and the limits before it. Global, because a limit is the
 * process's. */
static uint64_t allowed = UINT64_MAX;
static struct rlimit before;
static bool is_set;

bool limits_parse(const char *text, uint64_t *memory)
{
    return number_parse_size(text, memory) && *memory;
}

static uint64_t limits_size_of(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode) ? (uint64_t)file.st_size : 0;
}

static uint64_t limits_memory_of_machine(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
}

static uint64_t limits_default_memory(char *const *traces, size_t count)
{
    uint64_t upper_limit = limits_memory_of_machine() / 4 * 3;
    uint64_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += limits_size_of(traces[i]);
    uint64_t memory = LIMITS_MEMORY_MINIMUM;
    if (size > LIMITS_MEMORY_MINIMUM / LIMITS_MEMORY_RATIO)
        memory = size < UINT64_MAX / LIMITS_MEMORY_RATIO ? size * LIMITS_MEMORY_RATIO : UINT64_MAX;
    return memory < upper_limit ? memory : upper_limit;
}

/* A sanitizer maps terabytes of shadow memory; a limit would refuse them: there only steps are
 * limited. */
static void limit_data(void)
{
#ifndef HAS_SHADOW
    struct rlimit limit;
    if (getrlimit(RLIMIT_DATA, &before) != 0)
        return;
    limit = before;
    if (before.rlim_cur != RLIM_INFINITY && before.rlim_cur < allowed)
        allowed = before.rlim_cur;
    limit.rlim_cur = allowed;
    is_set = setrlimit(RLIMIT_DATA, &limit) == 0;
#endif
}

void limits_set(uint64_t memory, char *const *traces, size_t count)
{
    allowed = memory ? memory : limits_default_memory(traces, count);
    limit_data();
}

void limits_lift(void)
{
    if (is_set)
        setrlimit(RLIMIT_DATA, &before);
}

uint64_t limits_steps(void)
{
    return allowed / LIMITS_STEP_BYTES;
}

uint64_t limits_output(void)
{
    return allowed / 2;
}

uint64_t limits_files(void)
{
    return allowed < UINT64_MAX / 4 ? 4 * allowed : UINT64_MAX;
}

const char *limits_format(char text[LIMITS_TEXT])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    const char *option = "--max-memory SIZE";
    size_t unit = 0;
    uint64_t value = allowed;
    if (is_set && before.rlim_cur == allowed)
        option = "ulimit -d";
#ifdef RLIMIT_AS
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
        space.rlim_cur <= allowed) {
        value = space.rlim_cur;
        option = "ulimit -v";
    }
#endif
    while (value >= 10 * UINT64_C(1024) && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(text, LIMITS_TEXT, "%llu %s", (unsigned long long)value, units[unit]);
    return option;
}

/* The end of work that takes too long. */

/* A timer takes no more: some eight years. */
#define SECONDS_MAX UINT64_C(0xfffffff)

static struct interrupt_work interrupt_now;
static const struct output_file *volatile interrupt_file;
static volatile sig_atomic_t interrupt_why;
static struct sigaction interrupt_old_alarm, interrupt_old_key;

/* Ends the process as a failed command ends, from a signal handler. */
_Noreturn static void limits_interrupt_exit(void)
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

static void limits_interrupt_handle(int signal)
{
    int error = errno;
    if (signal == SIGALRM && interrupt_why == INTERRUPT_DEADLINE)
        limits_interrupt_exit();
    interrupt_why = signal == SIGALRM ? INTERRUPT_DEADLINE : INTERRUPT_USER;
    if (interrupt_now.notify)
        interrupt_now.notify(interrupt_now.context);
    errno = error;
}

void interrupt_begin(const struct interrupt_work *work)
{
    /* A key interrupts a read from the terminal. */
    struct sigaction action = {.sa_handler = limits_interrupt_handle};
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
