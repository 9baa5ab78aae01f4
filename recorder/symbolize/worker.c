/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "names.h"
#include "outbox.h"

enum { PIPE_FD = 3 };

/* The terminal's signals are for the parent to act on; it kills this process if need be. */
static void set_signals(void)
{
    static const int ignored[] = {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU};
    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_DFL);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)signal(ignored[i], SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void set_files(int fd)
{
    if (fd != PIPE_FD && dup2(fd, PIPE_FD) < 0)
        _exit(EXIT_FAILURE);
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < PIPE_FD; i++) {
        if (null < 0)
            close(i);
        else
            dup2(null, i);
    }
    closefrom(PIPE_FD + 1);
}

static uint64_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%lu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Lowers a limit, both the soft and the hard one. */
static void limit(__rlimit_resource_t resource, uint64_t value)
{
    struct rlimit old;
    if (getrlimit(resource, &old) == 0 && old.rlim_max < value)
        value = old.rlim_max;
    const struct rlimit limits = {value, value};
    (void)setrlimit(resource, &limits);
}

static void set_limits(const struct work *work)
{
    limit(RLIMIT_AS, address_space() + work->memory);
    limit(RLIMIT_CPU, work->seconds);
    limit(RLIMIT_CORE, 0);
    /* No files are written, except those that debuginfod fetches where the user wants that. */
    if (getenv("DEBUGINFOD_URLS") == NULL)
        limit(RLIMIT_FSIZE, 0);
    /* No core either where they go to a program, which ignores the limit. */
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void worker_run(const struct work *work)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != work->parent)
        _exit(EXIT_FAILURE);
    set_signals();
    set_files(work->fd);
    set_limits(work);
    struct outbox box = {.fd = PIPE_FD};
    for (size_t i = work->first; i < work->count; i++) {
        bool is_first = i == work->first;
        if (work->modules[i].offset_count == 0)
            continue;
        outbox_module(&box, (uint32_t)i);
        outbox_end(&box, names_tell(&box, &work->modules[i], is_first ? work->answered : NULL,
                                    is_first && work->reduced));
    }
    outbox_finished(&box);
    _exit(EXIT_SUCCESS);
}
