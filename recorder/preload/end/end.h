/* SPDX-License-Identifier: MIT */
/* The end of a process, once its handlers and destructors have run. */
#ifndef TTD_PRELOAD_END_END_H
#define TTD_PRELOAD_END_END_H

#include <signal.h>
#include <ucontext.h>

#include "../threads/thread.h"

/* Registers for the ends that the C library sees, before the program can. */
void end_register(void);

/*
 * Asks the collector for a snapshot, unless none is wanted or it was asked for before, and waits
 * for the answer as long as the collector makes progress. The thread is in PHASE_RECORD, with all
 * signals blocked; `mask` has those that were blocked before. The wait ends early when somebody
 * wants the program to end.
 */
void snapshot_ask(struct thread *thread, uint64_t mask);

/*
 * Tells the collector of a signal of which the process dies, from its handler, and asks for a
 * snapshot if one is wanted. Waits as snapshot_ask() does.
 */
void snapshot_tell_signal(int number, const siginfo_t *info, const ucontext_t *context);

/* Copies the process. The copy tells which blocks the runtimes keep, and ends. Returns its process
 * id, or a negative errno. The thread is in PHASE_RECORD, with all signals blocked. */
long runtime_copy(struct thread *thread);

/* Waits for the copy, for a limited time. A signal may end the wait. */
void runtime_await(long copy);

#endif
