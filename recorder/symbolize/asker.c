/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* close_range */
#include "asker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "question.h"
#include "worker.h"

static bool is_kept(int fd, int own, const int *files, size_t count)
{
    bool kept = fd == own;
    for (size_t i = 0; i < count; i++)
        kept |= fd == files[i];
    return kept;
}

/* Nobody waits for the end of a file, or for a lock, that only this process has open. */
static void close_others(int own, const int *files, size_t count)
{
    int highest = own;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    for (size_t i = 0; i < count; i++)
        highest = files[i] > highest ? files[i] : highest;
    for (int fd = STDERR_FILENO + 1; fd < highest; fd++)
        if (!is_kept(fd, own, files, count))
            close(fd);
    closefrom(highest + 1);
}

/* Signals are for the process that has started it; only that ends it. */
static void ignore_signals(void)
{
    static const int standard[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                                   SIGTRAP, SIGSYS, SIGABRT, SIGCHLD};
    for (int number = 1; number <= SIGRTMAX; number++)
        (void)signal(number, SIG_IGN);
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
        (void)signal(standard[i], SIG_DFL);
}

static _Noreturn void answer(int fd, asker_function *function, void *context)
{
    struct question question;
    while (question_receive(&question, fd)) {
        function(context, question.modules, question.count);
        question_free(&question);
        if (write(fd, "", 1) != 1)
            break;
    }
    _exit(EXIT_SUCCESS);
}

void asker_start(struct asker *asker, asker_function *function, void *context, const int *files,
                 size_t file_count)
{
    int ends[2];
    pid_t parent = getpid();
    *asker = (struct asker){.pid = 0};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return;
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    asker->pid = fork();
    if (asker->pid == 0) {
        ignore_signals();
        close_others(ends[1], files, file_count);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
            answer(ends[1], function, context);
        _exit(EXIT_FAILURE);
    }
    close(ends[1]);
    asker->fd = ends[0];
    if (asker->pid < 0) {
        close(ends[0]);
        *asker = (struct asker){.pid = 0};
    }
}

void asker_stop(struct asker *asker)
{
    if (asker->pid == 0)
        return;
    kill(asker->pid, SIGKILL);
    worker_wait(asker->pid);
    close(asker->fd);
    free(asker->question);
    *asker = (struct asker){.pid = 0};
}

/* Sends as much as can be sent now. False if nobody will read it. */
static bool send_more(struct asker *asker)
{
    while (asker->sent < asker->size) {
        ssize_t n =
            send(asker->fd, asker->question + asker->sent, asker->size - asker->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
        asker->sent += n > 0 ? (size_t)n : 0;
    }
    free(asker->question);
    asker->question = NULL;
    return true;
}

bool asker_is_busy(struct asker *asker)
{
    if (!asker->is_busy)
        return false;
    if (asker->question != NULL && !send_more(asker)) {
        asker_stop(asker);
        return false;
    }
    char done;
    ssize_t size = read(asker->fd, &done, sizeof done);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    asker->is_busy = false;
    if (size != sizeof done)
        asker_stop(asker);
    return false;
}

bool asker_ask(struct asker *asker, const struct symbolize_module *modules, size_t count)
{
    if (asker_is_busy(asker) || asker->pid == 0)
        return false;
    asker->question = question_pack(modules, count, &asker->size);
    asker->sent = 0;
    asker->is_busy = asker->question != NULL;
    if (asker->is_busy && !send_more(asker))
        asker_stop(asker);
    return asker->is_busy;
}
