/* SPDX-License-Identifier: MIT */
/** The side of a session that asks: all functions print why something fails. */
#ifndef RECORDER_SESSION_CLIENT_H
#define RECORDER_SESSION_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "session/session_messages.h"
#include "control.h"
#include "options.h"

/** Connects to the daemon of a session. Returns -1 if there is no such session. */
int client_connect(const char *session);

/** Sends the changes, and prints the daemon's answer. Returns an exit status. */
int client_update(int connected, const char *words, size_t size);

/** Waits until no recorder of the session begins any more. Prints why processes that the changes
 * name are not recorded. Returns an exit status. */
int client_await(int connected, const char *words, size_t size);

/** All processes of a session, and its texts. */
struct client_list {
    struct session_entry *entries;
    size_t count;
    size_t text_size;
    char text[SESSION_TEXT_MAX + 1];
};

/** Returns an exit status; on success the caller frees the entries. */
int client_read(int connected, struct client_list *list);

/** Ends a session, and waits until its traces are complete. */
int client_stop(const char *session);

/** Prints the names of all sessions of this user. */
int client_list(void);

/* The state of a session: the daemon has the list, each recorder its counts. */

/** Prints the processes of a session with their counts; again and again if `watches`. Returns an
 * exit status. */
int status_print(const char *session, bool watches, bool is_json);

/** Sends a command to the recorder of each process, with a number unless that is NULL, and prints
 * the answers. Returns an exit status: the status of a failure if one fails. */
int status_each(const char *session, enum control_command command, const uint64_t *interval);

/* Starts the daemon of a session. */

/** Starts the daemon, whose traces and log go to a new folder. Returns when it can be asked, with
 * an exit status: EXIT_EXISTS if there is such a session, after a message otherwise. */
int session_start(const char *session, const char *folder, const struct options *options,
                  bool ends_unused);

#endif
