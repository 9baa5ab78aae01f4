/* SPDX-License-Identifier: MIT */
/** The end of a process, once its handlers and destructors have run. */
#ifndef RECORDER_PRELOAD_END_EXIT_END_H
#define RECORDER_PRELOAD_END_EXIT_END_H

#include <signal.h>
#include <ucontext.h>

#include "preload/threads/recorded_thread.h"

/** Registers for the ends that the C library sees, before the program can. */
void end_register(void);

/**
 * Asks the collector for a snapshot, unless none is wanted or it was asked for before, and waits
 * for the answer as long as the collector makes progress. The thread is in PHASE_RECORD, with all
 * signals blocked; `mask` has those that were blocked before. The wait ends early when somebody
 * wants the program to end.
 */
void snapshot_ask(struct thread *thread, uint64_t mask);

/**
 * Reports a signal that ends the process to the collector, from its handler, and asks for a
 * snapshot if one is wanted. Waits as snapshot_ask() does.
 */
void snapshot_tell_signal(int number, const siginfo_t *info, const ucontext_t *context);

/** Whether the code that a signal has interrupted was called by the function at [begin, end), by
 * way of a few others at most. */
bool snapshot_is_called_by(const ucontext_t *context, uintptr_t begin, uintptr_t end);

/** Looks for the C library's function that releases its blocks, when the program starts. */
void runtime_find(void);

/** Whether no other thread or process has the memory of this one. */
bool runtime_has_process_alone(void);

/**
 * Reports in the process itself the blocks that the runtimes keep, and ends it with `status`: it
 * has nothing else left to do. Returns only if it cannot do so without harm, before it has changed
 * anything; then a copy is needed. The thread is as for runtime_copy().
 */
void runtime_ask_and_end(struct thread *thread, int status);

/** Ends the process: with the status that runtime_ask_and_end() was given, if it was called. */
_Noreturn void runtime_end(int status);

/**
 * Whether the program's own functions that allocate and release do so by calls of the C library's:
 * a copy of the process tries them. Called when the program starts; notes NOTE_FORWARDS then; this
 * is confirmed when the process ends.
 */
bool runtime_tries_functions(void);

/** Copies the process. The copy reports the blocks that the runtimes keep, and ends. Returns its
 * process id, or a negative errno. The thread is in PHASE_RECORD, with all signals blocked. */
long runtime_copy(struct thread *thread);

/** Waits for the copy, for a limited time. A signal may end the wait. */
void runtime_await(long copy);

#endif
