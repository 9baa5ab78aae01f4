/* SPDX-License-Identifier: MIT */
#include "collect/loans.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collect/process/origin.h"

/* Much longer than a process waits. */
#define LOAN_NS UINT64_C(60000000000)

/* Takes a copy of a descriptor out of a process. */
static int loan_socket(uint32_t pid, int32_t descriptor)
{
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    int copy = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, descriptor, 0) : -1;
    if (process >= 0)
        close(process);
    return copy;
}

static bool loan_send(int socket, int descriptor)
{
    char byte = 0;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    *(int *)(void *)CMSG_DATA(&control.header) = descriptor;
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

/* Gives a process the channel, opened anew: see host_is_held(). */
static bool loan_give(const struct host *host, const struct loan *loan)
{
    uint32_t pid = namespace_process(loan->pid, loan->address, loan->value);
    int socket = pid != 0 ? loan_socket(pid, loan->socket) : -1;
    int channel = socket >= 0 ? open(host->path, O_RDWR | O_CLOEXEC) : -1;
    bool is_sent = channel >= 0 && loan_send(socket, channel);
    if (channel >= 0)
        close(channel);
    if (socket >= 0)
        close(socket);
    return is_sent;
}

void loans_step(struct host *host, struct loan_seen *seen, uint64_t now)
{
    for (int i = 0; i < CHANNEL_LOANS; i++) {
        struct loan *loan = &host->channel->loans[i];
        uint32_t state = atomic_load_explicit(&loan->state, memory_order_acquire);
        if (state == LOAN_FREE || state != seen[i].state)
            seen[i] = (struct loan_seen){state, now};
        uint32_t next = state;
        if (state == LOAN_ASKED)
            next = loan_give(host, loan) ? LOAN_GIVEN : LOAN_REFUSED;
        else if (state != LOAN_FREE && now - seen[i].since > LOAN_NS)
            next = LOAN_FREE;
        if (next != state && atomic_compare_exchange_strong(&loan->state, &state, next))
            host_wake(&loan->state);
    }
}
