/* SPDX-License-Identifier: MIT */
/* Signals between ttdrecord, the program and the shell: what is sent to one reaches the other. */
#ifndef TTD_RECORDER_SIGNALS_H
#define TTD_RECORDER_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Set by signals_catch()'s handlers and by the collector. */
struct signals {
    volatile sig_atomic_t done;   /* the program has ended */
    volatile sig_atomic_t detach; /* how often the end was asked for since */
};

extern struct signals signals_seen;

/*
 * Passes on to the program, from now on, every signal that a process sends to us, with its value if
 * it has one. What the terminal sends goes to the whole process group, so the program has it too.
 * Once the program has ended, INT, QUIT, TERM and HUP count in `detach`, and the others do nothing.
 */
void signals_catch(pid_t program);

/* Whether we have been asked to stop, by the terminal or by a process, and not to go on since. */
bool signals_want_stop(void);

/* Stops this process as `number` has stopped the program, so that the shell sees it. Returns when
 * it goes on, and lets the program go on, if that is still stopped. */
void signals_stop(int number);

#endif
