/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "collect/collector.h"
#include "collect/process/origin.h"

#define ASK_NS UINT64_C(10000000000) /* who has not asked by then is disconnected */

void control_open(struct control *control, struct channel *channel)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t size = sizeof name.sun_family; /* the kernel chooses a name */
    control->count = 0;
    control->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control->listener < 0)
        return;
    if (bind(control->listener, (struct sockaddr *)&name, size) != 0 ||
        getsockname(control->listener, (struct sockaddr *)&name, (size = sizeof name, &size)) !=
            0 ||
        size <= offsetof(struct sockaddr_un, sun_path) + 1 ||
        size - offsetof(struct sockaddr_un, sun_path) > sizeof channel->control_name ||
        listen(control->listener, CONTROL_CLIENTS) != 0) {
        control_close(control);
        return;
    }
    channel->control_size = size - (uint32_t)offsetof(struct sockaddr_un, sun_path);
    memcpy(channel->control_name, name.sun_path, channel->control_size);
}

/* Whether the user at the other end may ask. */
static bool collector_may_ask(int socket)
{
    struct ucred user;
    socklen_t size = sizeof user;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0 && size == sizeof user &&
           (user.uid == geteuid() || user.uid == 0);
}

static void collector_accept_clients(struct control *control, uint64_t now)
{
    while (control->count < CONTROL_CLIENTS) {
        int socket = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0)
            return;
        if (!collector_may_ask(socket)) {
            close(socket);
            continue;
        }
        control->clients[control->count++] =
            (struct control_client){.socket = socket, .deadline = now + ASK_NS};
    }
}

/* Returns whether the client is done with: it has its answer, or gets none. */
static bool collector_serve(const struct control_client *client, uint64_t now,
                            control_function *handle, void *context)
{
    struct control_request request;
    ssize_t size = recv(client->socket, &request, sizeof request, MSG_TRUNC);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return now > client->deadline;
    if (size != sizeof request || request.magic != CONTROL_MAGIC)
        return true;
    struct control_answer answer = {.magic = CONTROL_MAGIC, .result = CONTROL_FAILED};
    handle(context, &request, &answer);
    answer.size = (uint32_t)strnlen(answer.text, sizeof answer.text);
    send(client->socket, &answer, sizeof answer, MSG_NOSIGNAL);
    return true;
}

void control_step(struct control *control, uint64_t now, control_function *handle, void *context)
{
    if (control->listener < 0)
        return;
    collector_accept_clients(control, now);
    for (unsigned i = control->count; i-- > 0;)
        if (collector_serve(&control->clients[i], now, handle, context)) {
            close(control->clients[i].socket);
            control->clients[i] = control->clients[--control->count];
        }
}

void control_close(struct control *control)
{
    for (unsigned i = 0; i < control->count; i++)
        close(control->clients[i].socket);
    control->count = 0;
    if (control->listener >= 0)
        close(control->listener);
    control->listener = -1;
}

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
