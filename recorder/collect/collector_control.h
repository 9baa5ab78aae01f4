/* SPDX-License-Identifier: MIT */
/* The collector's end of the control socket: see recorder/control.h. */
#ifndef RECORDER_COLLECT_COLLECTOR_CONTROL_H
#define RECORDER_COLLECT_COLLECTOR_CONTROL_H

#include "control.h"
#include "collect/channel/host.h"

enum { CONTROL_CLIENTS = 8 };

/* A client that has connected and has not sent its request yet. */
struct control_client {
    int socket;
    uint64_t deadline; /* in nanoseconds of the channel's clock */
};

struct control {
    int listener; /* -1 if there is none */
    struct control_client clients[CONTROL_CLIENTS];
    unsigned count;
};

/* Answers a request. The text of the answer is empty at first, and may be filled with snprintf().
 */
typedef void control_function(void *context, const struct control_request *request,
                              struct control_answer *answer);

/* Opens the socket, and writes its name into the channel. If that is impossible, nobody can ask. */
void control_open(struct control *control, struct channel *channel);

/* Answers the requests that have arrived. Never waits. */
void control_step(struct control *control, uint64_t now, control_function *handle, void *context);

void control_close(struct control *control);

#endif
