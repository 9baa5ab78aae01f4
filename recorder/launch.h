/* SPDX-License-Identifier: MIT */
/** Finds, checks and starts the program to record. */
#ifndef RECORDER_LAUNCH_H
#define RECORDER_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "collect/channel/host.h"

/** Exit statuses of ttdrecord itself; any other is the program's. */
enum launch_exit {
    EXIT_FINDINGS = 116, /* of --fail-on */
    EXIT_NO_SESSION = 117,
    EXIT_MEMORY = 118,
    EXIT_DENIED = 119,
    EXIT_EXISTS = 120, /* a session of this name */
    EXIT_SANITIZED = 121,
    EXIT_OUTPUT = 122,
    EXIT_SETUID = 123,
    EXIT_STATIC = 124,
    EXIT_RECORDER = 125, /* usage, and failures of our own */
    EXIT_CANNOT_RUN = 126,
    EXIT_NOT_FOUND = 127,
};

enum { LAUNCH_PATH_MAX = 4096 };

/**
 * Finds the program as a shell does, and checks that it can be recorded. Returns 0 and sets `path`,
 * or prints the reason and returns an exit status. `is_static` is set if the program is linked
 * statically, so that attach_launch() has to start it; if it is NULL, such a program is refused.
 */
int launch_find(const char *program, char path[LAUNCH_PATH_MAX], bool *is_static);

/** Checks that the program in a file can be recorded. `name` is the file's in messages. Returns 0,
 * or prints the reason and returns an exit status. */
int launch_check(const char *path, const char *name);

/** Finds the preload library, installed or in the build directory. Prints a message and returns
 * false if it cannot be used. */
bool launch_find_preload(char path[LAUNCH_PATH_MAX]);

/** Finds the library that is attached to a process, likewise. */
bool launch_find_attached(char path[LAUNCH_PATH_MAX]);

/** Finds the analyzer in the directory of this program, or in the build directory that this program
 * is in. Returns false, without a message, if it is in neither. */
bool launch_find_analyzer(char path[LAUNCH_PATH_MAX]);

/** Prints a message and returns false if this process is itself recorded: its children belong to
 * that recording. */
bool launch_is_possible(void);

/** Joins the arguments of a program, each of which ends with a NUL: with spaces between them.
 * `text` has room for a NUL behind its `size` bytes. */
void launch_join_arguments(char *text, size_t size);

/** A process that waits, and then executes the program. */
struct launch {
    pid_t pid;
    const char *path;
    int go;     /* pipe: a byte lets it execute the program */
    int report; /* pipe: the errno value if that failed */
};

/** Forks the process. `host` is NULL if the program gets nothing in its environment. Prints a
 * message and returns false on failure. */
bool launch_prepare(struct launch *launch, const char *path, char *const *arguments,
                    const char *preload, struct host *host);

/** Lets it execute the program. Prints a message, ends the process and returns false on failure. */
bool launch_go(struct launch *launch);

/** Ends the process without executing the program. */
void launch_cancel(struct launch *launch);

/* Limits of the recorder's own process. */

/** Keeps freed memory for the next trace. */
void limits_keep_memory(void);

/** Raises a limit as far as the system permits. */
void limits_raise(int resource);

/** Opens the channel in the memory file `memfd`, or in a new one if that is -1. Returns 0 or an
 * errno value. */
int limits_open_channel(struct host *host, int memfd, uint32_t flags);

/* Passes signals on between ttdrecord, the program and the shell. */

/** Set by signals_catch()'s handlers and by the collector. */
struct signals {
    volatile sig_atomic_t done;   /* the program has ended */
    volatile sig_atomic_t detach; /* number of signals since that ask us to end */
};

extern struct signals signals_seen;

/**
 * Passes every signal that a process sends to us on to the program, with its value if it has one. A
 * signal of the terminal goes to the whole process group, so the program gets it without us.
 * Once the program has ended, INT, QUIT, TERM and HUP count in `detach`, and the others do nothing.
 */
void signals_catch(pid_t program);

/** Whether the terminal or a process has asked us to stop, and none to continue since. */
bool signals_want_stop(void);

/** Stops this process by the signal that stopped the program, so that the shell sees it. Returns
 * when this process is continued, and continues the program if that is still stopped. */
void signals_stop(int number);

#endif
