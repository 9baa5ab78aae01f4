/* SPDX-License-Identifier: MIT */
/*
 * Signal stacks of the recorder, for its handler of fatal signals in a thread that has used up its
 * own stack. Threads get one when they attach, unless they have one; the program does not see it.
 */
#ifndef RECORDER_PRELOAD_THREADS_SIGNAL_STACK_H
#define RECORDER_PRELOAD_THREADS_SIGNAL_STACK_H

#include <signal.h>
#include <stdbool.h>

/* Gives the first thread a signal stack, and from now on each that attaches. */
void signal_stacks_begin(void);

/* Leaves it at those that have one: the program has signal stacks of its own. Its handlers would
 * run on the recorder's in threads for which it has none. */
void signal_stacks_end(void);

/* Whether threads may have a signal stack that the program has not set. */
bool signal_stacks_are_given(void);

/* Gives the calling thread a signal stack, if it has none or another slot's. `memory` is of the
 * thread's slot: the stack that an earlier thread has left there, or NULL. */
void signal_stack_give(void **memory);

/* Whether a signal stack of the calling thread is the recorder's. */
bool signal_stack_is_own(const stack_t *stack);

#endif
