/* SPDX-License-Identifier: MIT */
/* The user's own folder for sockets of sessions: nobody else can enter it. */
#ifndef RECORDER_SESSION_SESSION_PLACE_H
#define RECORDER_SESSION_SESSION_PLACE_H

#include <stdbool.h>
#include <sys/un.h>

/* Opens the folder, which is made if it is not there. Returns a descriptor, or -1 with a reason. */
int place_open(const char **reason);

/* Whether a text is a name for a session: letters, digits and "+-_.", not first a dot or a dash. */
bool place_is_name(const char *name);

/* The socket of a session, by a path through the open folder. */
void place_address(int place, const char *name, struct sockaddr_un *address);

/* Takes the lock of a session for as long as the descriptor is open in any process. Returns -1 if a
 * daemon has it, or with another errno. */
int place_lock(int place, const char *name);

/* Removes the files of a session whose lock is held. */
void place_remove(int place, const char *name);

#endif
