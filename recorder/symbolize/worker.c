/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "names.h"
#include "outbox.h"
#include "question.h"

enum { PIPE_FD = 3 };

/* More than that is not kept while a program is recorded, which needs memory, too. */
#define RESIDENT_MAX (UINT64_C(256) << 20)

/* Ignores signals to the whole process group: the parent acts on them, and kills this process if
 * need be. */
static void set_signals(void)
{
    static const int standard[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP,
                                   SIGSYS,  SIGABRT, SIGCONT, SIGCHLD, SIGXCPU};
    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_IGN);
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
        (void)signal(standard[i], SIG_DFL);
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

struct sizes {
    uint64_t mapped;
    uint64_t resident;
};

static struct sizes own_sizes(void)
{
    unsigned long mapped = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%lu %lu", &mapped, &resident) != 2)
            mapped = resident = 0;
        fclose(file);
    }
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return (struct sizes){mapped * page, resident * page};
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

static void allow_many_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

static void set_limits(const struct work *work)
{
    limit(RLIMIT_AS, own_sizes().mapped + work->memory);
    limit(RLIMIT_CPU, work->seconds);
    limit(RLIMIT_CORE, 0);
    allow_many_files();
    /* No files are written, except those that debuginfod fetches where the user wants that. */
    if (getenv("DEBUGINFOD_URLS") == NULL)
        limit(RLIMIT_FSIZE, 0);
    /* No core either where they go to a program, which ignores the limit. */
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* Whether there may be too little memory for the next module, or for others. */
static bool is_large(const struct shelf *shelf)
{
    struct sizes sizes = own_sizes();
    return sizes.resident > RESIDENT_MAX || sizes.mapped > shelf->mapped_max;
}

static void tell_modules(struct outbox *box, struct shelf *shelf, const struct work *work)
{
    for (size_t i = work->first; i < work->count; i++) {
        bool is_first = i == work->first;
        if (work->modules[i].offset_count == 0)
            continue;
        outbox_module(box, (uint32_t)i);
        outbox_end(box, names_tell(box, shelf, &work->modules[i], is_first ? work->answered : NULL,
                                   is_first && work->reduced));
        if (shelf != NULL && is_large(shelf))
            shelf_clear(shelf);
    }
    outbox_finished(box);
}

static void answer_questions(struct outbox *box, uint64_t memory)
{
    struct shelf shelf = {.mapped_max = own_sizes().mapped + memory / 2};
    struct question question;
    while (question_receive(&question, PIPE_FD)) {
        struct work asked = {.modules = question.modules, .count = question.count};
        tell_modules(box, &shelf, &asked);
        question_free(&question);
    }
}

static _Noreturn void run(const struct work *work, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(EXIT_FAILURE);
    set_signals();
    set_files(work->fd);
    set_limits(work);
    struct outbox box = {.fd = PIPE_FD};
    if (work->modules != NULL)
        tell_modules(&box, NULL, work);
    else
        answer_questions(&box, work->memory);
    _exit(EXIT_SUCCESS);
}

/* ECHILD is fine: the caller ignores SIGCHLD, and then nothing is left to wait for. */
void worker_wait(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

pid_t worker_start(const struct work *work)
{
    /* The caller's handlers must not run in the child. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        run(work, parent);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}
