/* SPDX-License-Identifier: MIT */
/* The side of a session that asks: all functions print why something fails. */
#ifndef RECORDER_SESSION_CLIENT_H
#define RECORDER_SESSION_CLIENT_H

#include <stddef.h>

#include "session/session_messages.h"

/* Connects to the daemon of a session. Returns -1 if there is no such session. */
int client_connect(const char *session);

/* Sends the changes, and prints the daemon's answer. Returns an exit status. */
int client_update(int connected, const char *words, size_t size);

/* Waits until no recorder of the session begins any more. Prints why processes that the changes
 * name are not recorded. Returns an exit status. */
int client_await(int connected, const char *words, size_t size);

/* All processes of a session, and its texts. */
struct client_list {
    struct session_entry *entries;
    size_t count;
    size_t text_size;
    char text[SESSION_TEXT_MAX + 1];
};

/* Returns an exit status; on success the caller frees the entries. */
int client_read(int connected, struct client_list *list);

/* Ends a session, and waits until its traces are complete. */
int client_stop(const char *session);

/* Prints the names of all sessions of this user. */
int client_list(void);

#endif
