/* SPDX-License-Identifier: MIT */
/**
 * Calls that come from within the module that defines the function, past its table of functions. A
 * library that is loaded before it takes no part in them: they are the allocator's own doing. One
 * whose functions are patched sees them, and lets them pass.
 */
#ifndef RECORDER_PRELOAD_THREADS_INTERNAL_H
#define RECORDER_PRELOAD_THREADS_INTERNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/threads/recorded_thread.h"

#ifdef TTD_ATTACHED

extern struct attached attached __asm__(ATTACHED_SYMBOL) __attribute__((visibility("default")));

/** Number of hooks that the thread is in. It shows when the hooks can be taken away; at the
 * instructions before it is raised, and after it was lowered, the program counter shows it. */
#define attached_depth thread_locals.attached.depth

static inline __attribute__((always_inline)) void thread_attached_leave(const int *unused)
{
    (void)unused;
    attached_depth--;
}

/** Whether a call is such, by its return address. */
static inline bool internal_is_call(uintptr_t site)
{
    if (LIKELY(site - attached.internal_begin >= attached.internal_end - attached.internal_begin))
        return false;
    uint64_t low = 0, high = attached.internal_count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (attached.internal[middle] == site)
            return true;
        if (attached.internal[middle] < site)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

#else

static inline bool internal_is_call(uintptr_t site)
{
    (void)site;
    return false;
}

#endif

/*
 * Signal stacks of the recorder, for its handler of fatal signals in a thread that has used up its
 * own stack. Threads get one when they attach, unless they have one; the program does not see it.
 */

/** Gives the first thread a signal stack, and from now on each that attaches. */
void signal_stacks_begin(void);

/** Leaves it at those that have one: the program has signal stacks of its own. Its handlers would
 * run on the recorder's in threads that it has none for. */
void signal_stacks_end(void);

/** Whether threads may have a signal stack that the program has not set. */
bool signal_stacks_are_given(void);

/** Gives the calling thread a signal stack, if it has none or another slot's. `memory` is of the
 * thread's slot: the stack that an earlier thread has left there, or NULL. */
void signal_stack_give(void **memory);

/** Whether a signal stack of the calling thread is the recorder's. */
bool signal_stack_is_own(const stack_t *stack);

#endif
