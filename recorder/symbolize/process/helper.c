/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* syscall */
#include "symbolize/process/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbolize/symbolize.h"
#include "symbolize/process/worker.h"

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
    close(ends[0]); /* which ends the child */
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

static bool send_all(int fd, const uint8_t *data, size_t size, int64_t until)
{
    while (size > 0) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            int64_t remaining = until - milliseconds();
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
    bool sent = request && send_all(helper->fd, request, size, until);
    free(request);
    if (!sent)
        helper_give_up(helper);
    return sent;
}

void helper_done(struct helper *helper)
{
    helper->state = HELPER_READY;
}
