/* SPDX-License-Identifier: MIT */
/* Passes signals on between ttdrecord, the program and the shell. */
#ifndef RECORDER_SIGNALS_H
#define RECORDER_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Set by signals_catch()'s handlers and by the collector. */
struct signals {
    volatile sig_atomic_t done;   /* the program has ended */
    volatile sig_atomic_t detach; /* number of signals since that ask us to end */
};

extern struct signals signals_seen;

/*
 * Passes every signal that a process sends to us on to the program, with its value if it has one. A
 * signal of the terminal goes to the whole process group, so the program gets it without us.
 * Once the program has ended, INT, QUIT, TERM and HUP count in `detach`, and the others do nothing.
 */
void signals_catch(pid_t program);

/* Whether the terminal or a process has asked us to stop, and none to continue since. */
bool signals_want_stop(void);

/* Stops this process by the signal that stopped the program, so that the shell sees it. Returns
 * when this process is continued, and continues the program if that is still stopped. */
void signals_stop(int number);

#endif
