/* SPDX-License-Identifier: MIT */
/*
 * What every hook of an allocation function does before and after the real call. Hooks are compiled
 * with frame pointers, for unwind_here().
 */
#ifndef TTD_PRELOAD_HOOKS_H
#define TTD_PRELOAD_HOOKS_H

#include "real.h"
#include "target.h"

/* An acquisition begins: just a step of the thread. */
static inline void acquisition_begin(struct thread *thread)
{
    thread->steps++;
}

/* An acquisition has returned. */
#define ACQUISITION_END(thread, operation, ...)                                                    \
    do {                                                                                           \
        struct unwind_regs caller_;                                                                \
        unwind_here(&caller_);                                                                     \
        const uint64_t operands_[] = {__VA_ARGS__};                                                \
        thread_record(thread, operation, &caller_, operands_,                                      \
                      sizeof operands_ / sizeof *operands_);                                       \
        target_leave(thread);                                                                      \
    } while (0)

/* A release is about to begin: it takes effect, for the trace, now. */
#define RELEASE_BEGIN(thread, operation, ...)                                                      \
    do {                                                                                           \
        struct unwind_regs caller_;                                                                \
        unwind_here(&caller_);                                                                     \
        const uint64_t operands_[] = {__VA_ARGS__};                                                \
        atomic_store_explicit(&thread->slot->in_release, 1, memory_order_relaxed);                 \
        thread_record(thread, operation, &caller_, operands_,                                      \
                      sizeof operands_ / sizeof *operands_);                                       \
    } while (0)

/* A release has returned: a step of the thread. */
static inline void release_end(struct thread *thread)
{
    thread->steps++;
    atomic_store_explicit(&thread->slot->in_release, 0, memory_order_release);
    target_leave(thread);
}

#endif
