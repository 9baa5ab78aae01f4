/* SPDX-License-Identifier: MIT */
/**
 * The daemon of a session: has a recorder for each process, in a process of its own, and keeps the
 * list. It sleeps in poll() without a time limit unless a program is just being executed.
 */
#ifndef RECORDER_SESSION_DAEMON_H
#define RECORDER_SESSION_DAEMON_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "session/session_messages.h"

/*
 * Programs that are recorded by name. The system asks before it executes one of their files
 * (fanotify); this lasts until the answer, or until the descriptor is closed: a daemon that is
 * killed holds up nothing. A file that replaces one of them is noticed.
 */

enum { NAMES_MAX = 64 };

struct names {
    int events;  /* fanotify; -1 if it is not permitted */
    int changes; /* inotify; -1 likewise */
    size_t count;
    struct named_program {
        char *path;
        int folder; /* watch of inotify */
    } items[NAMES_MAX];
};

/** Returns 0, or an errno value if the system does not permit it. */
int names_open(struct names *names);

/** Closes the descriptors: in a process that must not hold up others, and at the end. */
void names_close(struct names *names);

/** Adds or removes a program. Return 0 or an errno value. */
int names_watch(struct names *names, const char *path);
int names_forget(struct names *names, const char *path);

/** A thread that is about to execute a program. */
struct names_event {
    int file;     /* the program; the answer is given by it */
    uint32_t tid; /* 0 if it is in a PID namespace that is not visible here */
};

/** Reads the next event. Returns false if there is none. */
bool names_next(struct names *names, struct names_event *event);

/** Lets the thread execute the program. */
void names_allow(struct names *names, struct names_event *event);

/** Reads changes of folders, and watches the files that have replaced others. */
void names_follow_changes(struct names *names);

/* The daemon itself. */

enum { DAEMON_CLIENTS = 16, DAEMON_PENDING = 64, DAEMON_RECORDS = 4096 };

struct daemon_record {
    struct session_entry entry;
    uint32_t thread; /* that executes the program; 0 if the process ran already */
    int ready;       /* gets a byte once the recording has begun; -1 then */
};

/** A thread that waits for leave to execute a program, until its recorder traces it. */
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

/** Answers the request that a client has sent. Returns false if it is to be disconnected. Public
 * for a fuzz target. */
bool daemon_serve(struct daemon *daemon, int client);

/** Serves until it is stopped. `listener` is listening. */
void daemon_run(struct daemon *daemon);

/* The recorders of a session: processes that the daemon forks. */

struct daemon;
struct daemon_record;
struct names_event;

/** Starts the recorder of a process that runs. Returns false if that is impossible. */
bool recorders_attach(struct daemon *daemon, struct daemon_record *record, uint32_t pid);

/** Starts the recorder of a thread that waits to execute a program. `seized` gets a byte, or ends,
 * when the thread is to be let go. */
bool recorders_catch(struct daemon *daemon, struct daemon_record *record,
                     const struct names_event *event, int *seized);

#endif
