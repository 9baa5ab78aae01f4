/* SPDX-License-Identifier: MIT */
#include "collect/collector_control.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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
static bool may_ask(int socket)
{
    struct ucred user;
    socklen_t size = sizeof user;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0 && size == sizeof user &&
           (user.uid == geteuid() || user.uid == 0);
}

static void accept_clients(struct control *control, uint64_t now)
{
    while (control->count < CONTROL_CLIENTS) {
        int socket = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0)
            return;
        if (!may_ask(socket)) {
            close(socket);
            continue;
        }
        control->clients[control->count++] =
            (struct control_client){.socket = socket, .deadline = now + ASK_NS};
    }
}

/* Returns whether the client is done with: it has its answer, or gets none. */
static bool serve(const struct control_client *client, uint64_t now, control_function *handle,
                  void *context)
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
    accept_clients(control, now);
    for (unsigned i = control->count; i-- > 0;)
        if (serve(&control->clients[i], now, handle, context)) {
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
