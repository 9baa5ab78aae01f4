/* SPDX-License-Identifier: MIT */
/*
 * The daemon of a session: has a recorder for each process, in a process of its own, and keeps the
 * list. It sleeps in poll() without a time limit unless a program is just being executed.
 */
#ifndef RECORDER_SESSION_DAEMON_H
#define RECORDER_SESSION_DAEMON_H

#include <signal.h>

#include "options.h"
#include "session/session_messages.h"
#include "session/session_names.h"

enum { DAEMON_CLIENTS = 16, DAEMON_PENDING = 64, DAEMON_RECORDS = 4096 };

struct daemon_record {
    struct session_entry entry;
    uint32_t thread; /* that executes the program; 0 if the process ran already */
    int ready;       /* gets a byte once the recording has begun; -1 then */
};

/* A thread that waits for leave to execute a program, until its recorder traces it. */
struct daemon_pending {
    struct names_event event;
    int seized; /* gets a byte, or is closed, by the recorder */
    uint64_t deadline;
};

struct daemon {
    const char *folder; /* an absolute path */
    struct options options;
    int listener;
    int signals; /* a descriptor of SIGCHLD and SIGTERM */
    struct names names;
    int names_error; /* why there are none; 0 if there are */
    int clients[DAEMON_CLIENTS];
    size_t client_count;
    struct daemon_pending pending[DAEMON_PENDING];
    size_t pending_count;
    struct daemon_record *records;
    size_t count, capacity;
    bool is_stopping;
    bool ends_unused; /* when there are no names and no recorders any more */
    bool was_updated;
    int stopper; /* the client that waits for the end; -1 for none */
};

/* Answers the request that a client has sent. Returns false if it is to be disconnected. Public for
 * a fuzz target. */
bool daemon_serve(struct daemon *daemon, int client);

/* Serves until it is stopped. `listener` is listening. */
void daemon_run(struct daemon *daemon);

#endif
