/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* syscall, close_range */
#include "symbolize/process/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbolize/symbolize.h"
#include "symbolize/process/worker.h"

static bool helper_is_kept(int fd, int own_file, const int *files, size_t count)
{
    bool is_kept_file = fd == own_file;
    for (size_t i = 0; i < count; i++)
        is_kept_file |= fd == files[i];
    return is_kept_file;
}

/* Closes inherited descriptors: otherwise this process would keep pipes open, and locks held, whose
 * end others wait for. */
static void helper_close_others(int own_file, const int *files, size_t count)
{
    int highest = own_file;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    for (size_t i = 0; i < count; i++)
        highest = files[i] > highest ? files[i] : highest;
    for (int fd = STDERR_FILENO + 1; fd < highest; fd++)
        if (!helper_is_kept(fd, own_file, files, count))
            close(fd);
    closefrom(highest + 1);
}

/* Ignores signals to the process group: the parent acts on them, and kills this process. */
static void helper_ignore_signals(void)
{
    static const int standard[] = {SIGSEGV, SIGBUS, SIGFPE,  SIGILL,
                                   SIGTRAP, SIGSYS, SIGABRT, SIGCHLD};
    for (int number = 1; number <= SIGRTMAX; number++)
        (void)signal(number, SIG_IGN);
    for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
        (void)signal(standard[i], SIG_DFL);
}

static _Noreturn void helper_lookup_answer(int fd, lookup_function *function, void *context)
{
    struct lookup_request request;
    while (lookup_request_receive(&request, fd)) {
        function(context, request.modules, request.count);
        lookup_request_free(&request);
        if (write(fd, "", 1) != 1)
            break;
    }
    _exit(EXIT_SUCCESS);
}

void lookup_process_start(struct lookup_process *process, lookup_function *function, void *context,
                          const int *files, size_t file_count)
{
    int ends[2];
    pid_t parent = getpid();
    *process = (struct lookup_process){.pid = 0};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return;
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    process->pid = fork();
    if (process->pid == 0) {
        helper_ignore_signals();
        helper_close_others(ends[1], files, file_count);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
            helper_lookup_answer(ends[1], function, context);
        _exit(EXIT_FAILURE);
    }
    close(ends[1]);
    process->fd = ends[0];
    if (process->pid < 0) {
        close(ends[0]);
        *process = (struct lookup_process){.pid = 0};
    }
}

void lookup_process_stop(struct lookup_process *process)
{
    if (process->pid == 0)
        return;
    kill(process->pid, SIGKILL);
    worker_wait(process->pid);
    close(process->fd);
    free(process->request);
    *process = (struct lookup_process){.pid = 0};
}

/* Sends as much as the socket takes now. Returns false if the process is gone. */
static bool helper_send_more(struct lookup_process *process)
{
    while (process->sent < process->size) {
        ssize_t n = send(process->fd, process->request + process->sent,
                         process->size - process->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
        process->sent += n > 0 ? (size_t)n : 0;
    }
    free(process->request);
    process->request = NULL;
    return true;
}

bool lookup_process_is_busy(struct lookup_process *process)
{
    if (!process->is_busy)
        return false;
    if (process->request && !helper_send_more(process)) {
        lookup_process_stop(process);
        return false;
    }
    char signal_byte;
    ssize_t size = read(process->fd, &signal_byte, sizeof signal_byte);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    process->is_busy = false;
    if (size != sizeof signal_byte)
        lookup_process_stop(process);
    return false;
}

bool lookup_process_send(struct lookup_process *process, const struct symbolize_module *modules,
                         size_t count)
{
    if (lookup_process_is_busy(process) || process->pid == 0)
        return false;
    process->request = lookup_request_pack(modules, count, &process->size);
    process->sent = 0;
    process->is_busy = process->request != NULL;
    if (process->is_busy && !helper_send_more(process))
        lookup_process_stop(process);
    return process->is_busy;
}

/* Limit of processor time, in case the child loops after all its users are gone. */
enum { SECONDS = 600 };

void helper_start(struct helper *helper, uint64_t memory)
{
    int ends[2];
    *helper = (struct helper){.state = HELPER_NONE};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return;
    struct worker_job job = {.memory = memory, .seconds = SECONDS, .fd = ends[1]};
    pid_t pid = worker_start(&job);
    int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    close(ends[1]);
    if (pidfd >= 0) {
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
        *helper = (struct helper){HELPER_READY, ends[0], pid, pidfd};
        return;
    }
    close(ends[0]); /* it ends the child */
    if (pid > 0)
        worker_wait(pid);
}

void helper_stop(struct helper *helper)
{
    if (helper->pid == 0)
        return;
    helper_give_up(helper);
    close(helper->fd);
    close(helper->pidfd);
    worker_wait(helper->pid);
    helper->pid = 0;
}

void helper_give_up(struct helper *helper)
{
    helper->state = HELPER_NONE;
    (void)syscall(SYS_pidfd_send_signal, helper->pidfd, SIGKILL, NULL, 0);
}

static bool helper_send_all(int fd, const uint8_t *data, size_t size, int64_t until)
{
    while (size > 0) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            int64_t remaining = until - symbolize_milliseconds();
            struct pollfd event = {.fd = fd, .events = POLLOUT};
            if (remaining <= 0 || symbolize_is_stopped())
                return false;
            (void)poll(&event, 1, remaining < 1000 ? (int)remaining : 1000);
        } else if (n < 0 && errno != EINTR) {
            return false;
        }
        data += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool helper_ask(struct helper *helper, const struct symbolize_module *modules, size_t count,
                int64_t until)
{
    if (helper->state == HELPER_NONE)
        return false;
    size_t size;
    uint8_t *request =
        helper->state == HELPER_READY ? lookup_request_pack(modules, count, &size) : NULL;
    helper->state = HELPER_ASKED;
    bool sent = request && helper_send_all(helper->fd, request, size, until);
    free(request);
    if (!sent)
        helper_give_up(helper);
    return sent;
}

void helper_done(struct helper *helper)
{
    helper->state = HELPER_READY;
}
