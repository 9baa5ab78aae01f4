/* SPDX-License-Identifier: MIT */
/**
 * Thread-local data of a thread that is gone. The C library reuses the control blocks of threads,
 * and clears the thread-local storage of modules that it knows. The library that is attached to a
 * process has its data in bytes of the control block that the C library does not use, and does not
 * clear: a cookie beside them names the attachment and the thread that they belong to.
 */
#ifndef RECORDER_PRELOAD_THREADS_STALE_STACK_H
#define RECORDER_PRELOAD_THREADS_STALE_STACK_H

#include "preload/threads/island.h"
#include "preload/threads/recorded_thread.h"

#ifdef TTD_ATTACHED

/** The upper half is random, and of this attachment. */
extern uint64_t stale_key;
/** Offset of the thread's id in the control block. */
extern uint32_t stale_id_field;

/** Returns the cookie of the calling thread. */
static inline uint64_t stale_own_cookie(void)
{
    uint32_t id;
    __asm__ volatile("movl %%fs:(%1), %0" : "=r"(id) : "r"((uintptr_t)stale_id_field));
    return stale_key ^ id;
}

/** Returns target_self; NULL if that is another thread's. */
static inline struct thread *stale_self(void)
{
    return __builtin_expect(thread_locals.attached.cookie == stale_own_cookie(), 1) ? target_self
                                                                                    : NULL;
}

/** Forgets the data of another thread. */
static inline void stale_forget(void)
{
    if (thread_locals.attached.cookie == stale_own_cookie())
        return;
    target_self = NULL;
    island_forget();
    thread_locals.attached.mark = ATTACHED_MAGIC;
    thread_locals.attached.cookie = stale_own_cookie();
}

/** Forgets the data of another attachment, in the child of a fork: it has its parent's. */
static inline void stale_forget_foreign(void)
{
    if ((thread_locals.attached.cookie ^ stale_key) >> 32 == 0)
        return;
    target_self = NULL;
    island_forget();
}

#else

static inline struct thread *stale_self(void)
{
    return target_self;
}

static inline void stale_forget(void)
{
}

static inline void stale_forget_foreign(void)
{
}

#endif

#endif
