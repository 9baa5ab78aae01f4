/* SPDX-License-Identifier: MIT */
/**
 * Signals that end a program: the recorder's handler takes the place of the default action, and
 * only that. It reports the signal to the collector, and lets the process die of it as it would
 * have. The program sees the default action: see hooks/signal.c.
 */
#ifndef RECORDER_PRELOAD_END_FATAL_SIGNAL_H
#define RECORDER_PRELOAD_END_FATAL_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/** Installs the handler for all signals that have the default action. */
void fatal_watch(void);

/** Leaves the default action, in the child of a fork, to signals that the system ignores there: the
 * first process of a namespace does not die of them. */
void fatal_watch_child(void);

/** Restores the default action, and leaves it from then on. */
void fatal_unwatch(void);

/** Puts the handler in the place of the default action that a watched signal has by now. */
void fatal_take_place(int number);

/** Whether the handler takes the place of the signal's default action. */
bool fatal_is_watched(int number);

/** Whether a signal shows a mistake of the program. Any other one asks it to end. */
bool fatal_is_fault(int number);

/** Called before the process ends, or becomes another program, in any other way: waits if another
 * thread is about to let it die. Without the handler it would be dead. */
void fatal_await_death(void);

/** Whether an action is the handler. */
bool fatal_is_own(const struct sigaction *installed);

/**
 * Where the program's handlers of SIGABRT return to, in the place of the C library's function that
 * continues the interrupted code. abort() resets the action when the handler has returned, past any
 * hook, and raises the signal again: it is reported here.
 */
void fatal_return(void) __attribute__((visibility("hidden")));

/** The next sigaction(); it knows nothing of the handler; NULL if there is none. */
typedef int sigaction_function(int, const struct sigaction *, struct sigaction *);
sigaction_function *fatal_real_sigaction(void);

/** The action that takes the place of the default one. */
extern const struct sigaction *const fatal_action;

#endif
