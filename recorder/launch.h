/* SPDX-License-Identifier: MIT */
/* Starting the program that is to be recorded. */
#ifndef TTD_RECORDER_LAUNCH_H
#define TTD_RECORDER_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "collect/host.h"

/* Exit statuses of ttdrecord itself; any other is that of the program. */
enum launch_exit {
    EXIT_SANITIZED = 121,
    EXIT_OUTPUT = 122,
    EXIT_SETUID = 123,
    EXIT_STATIC = 124,
    EXIT_RECORDER = 125, /* usage, and failures of our own */
    EXIT_CANNOT_RUN = 126,
    EXIT_NOT_FOUND = 127,
};

enum { LAUNCH_PATH_MAX = 4096 };

/*
 * Finds the program as a shell would, and checks that it can be recorded. Returns 0 and sets
 * `path`, or says why not and returns an exit status.
 */
int launch_find(const char *program, char path[LAUNCH_PATH_MAX]);

/* Finds the preload library: installed, or where it was built. False, with a message, if it cannot
 * be used. */
bool launch_find_preload(char path[LAUNCH_PATH_MAX]);

/* False, with a message, if we are recorded ourselves: what we start is the other recording's. */
bool launch_is_possible(void);

/* A process that is to become the program, and waits until it may. */
struct launch {
    pid_t pid;
    const char *path;
    int go;     /* written to: it may */
    int report; /* read from: why it could not */
};

/* Prepares to run the program. False, with a message, if that is impossible. */
bool launch_prepare(struct launch *launch, const char *path, char *const *arguments,
                    const char *preload, struct host *host);

/* Lets it run. False, with a message, if it could not be executed; it is gone then. */
bool launch_go(struct launch *launch);

/* Ends it instead. */
void launch_cancel(struct launch *launch);

#endif
