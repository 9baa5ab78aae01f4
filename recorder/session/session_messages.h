/* SPDX-License-Identifier: MIT */
/**
 * Messages between `ttdrecord session` and the daemon of a session: requests and answers, each a
 * packet of a local socket in the user's own folder (place.h). Only the user of the daemon, and
 * root, may ask.
 */
#ifndef RECORDER_SESSION_SESSION_MESSAGES_H
#define RECORDER_SESSION_SESSION_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#define SESSION_MAGIC UINT64_C(0x314e535354544454) /* "TDTTSSN1" */

enum session_command { SESSION_LIST = 1, SESSION_UPDATE = 2, SESSION_STOP = 3 };

enum { SESSION_TEXT_MAX = 8192, SESSION_ENTRIES = 32, SESSION_NAME_MAX = 64 };

struct session_request {
    uint64_t magic;
    uint32_t command; /* enum session_command */
    uint32_t from;    /* SESSION_LIST: index of the first process of the answer */
    uint32_t size;    /* of the text */
    /** SESSION_UPDATE: changes, each with a NUL behind it: '+' or '-', then 'p' and a process id,
       or 'n' and the path of a program. */
    char text[SESSION_TEXT_MAX];
};

enum session_state { SESSION_STARTING, SESSION_RECORDING, SESSION_ENDED, SESSION_REFUSED };

/** A process of the session. */
struct session_entry {
    uint32_t pid;
    uint32_t collector; /* process id of its recorder */
    uint32_t state;     /* enum session_state */
    uint32_t status;    /* exit status of its recorder, if it has ended */
    char file[128];     /* its trace, in the folder */
};

struct session_answer {
    uint64_t magic;
    uint32_t result; /* an exit status */
    uint32_t count;  /* of entries */
    uint32_t total;  /* number of processes */
    uint32_t size;   /* of the text */
    /** SESSION_LIST: the folder, then the programs that are recorded by name, each with a NUL
       behind it. A message otherwise. */
    char text[SESSION_TEXT_MAX];
    struct session_entry entries[SESSION_ENTRIES];
};

/* The user's own folder for sockets of sessions: nobody else can enter it. */

/** Opens the folder; makes it if it is not there. Returns a descriptor, or -1 with a reason.
 */
int place_open(const char **reason);

/** Whether a text is a name for a session: letters, digits and "+-_.", not first a dot or a dash.
 */
bool place_is_name(const char *name);

/** The socket of a session, by a path through the open folder. */
void place_address(int place, const char *name, struct sockaddr_un *address);

#endif
