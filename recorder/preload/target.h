/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the preload library share.
 *
 * Everything here runs inside somebody else's program, at any moment, in any thread, also in
 * signal handlers and in the children of fork and vfork. So: no memory but from mmap, no locks
 * where a call takes its usual way, no errno touched, nothing torn down.
 */
#ifndef TTD_PRELOAD_TARGET_H
#define TTD_PRELOAD_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../channel.h"
#include "unwind.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EXPORT      __attribute__((visibility("default")))

/* Where a thread is within one of our hooks. */
enum phase {
    PHASE_OUT,    /* in none */
    PHASE_CALL,   /* the allocator runs: what it calls is its own affair */
    PHASE_RECORD, /* we run: a call now comes from a signal handler, and is lost */
};

/* The part of the address space where a thread's stack may be read: [low, high). */
struct stack_bounds {
    uintptr_t low;
    uintptr_t high;
    bool grows; /* downwards, beyond low: the first thread's */
};

/* An operator new that has been called and may leave by an exception; the last operand is 0. */
struct throwing_call {
    unsigned operation; /* 0 for none */
    unsigned count;
    uint64_t operands[4];
    struct unwind_delta stack;
    /* What it last called malloc for: its own result, or else the exception that it left by. */
    uint64_t inner_block;
    uint64_t inner_size;
};

/* A recording thread; indexed by its slot, used again when the collector has freed the slot. */
struct thread {
    uintptr_t guard; /* stack pointer of the hook that is running, 0 for none */
    enum phase phase;
    bool starving; /* a wait for a free chunk was in vain: do not wait again */
    uint64_t *write;
    uint64_t *limit;
    uint64_t *data; /* of the chunk; NULL when there is none */
    struct chunk *chunk;
    uint32_t chunk_index; /* CHANNEL_NONE when there is none */
    struct thread_slot *slot;
    uint64_t sequence;
    uint64_t steps;
    uint64_t clock;
    struct stack_bounds stack;
    struct throwing_call throwing;
    struct unwinder *unwinder;
};

/* Reads 0 in the child of a fork, by MADV_WIPEONFORK, and stays 1 in that of a vfork. */
struct on_page {
    uint32_t on;
    /* The collector has refused this process: it is not to begin again. */
    uint32_t refused;
};

extern struct channel *target_channel;
extern struct channel_view target_view;
extern struct on_page *target_on;
/* Set when the system has no expedited membarrier: the collector then relies on our own fence. */
extern bool target_fences;

extern __thread struct thread *target_self __attribute__((tls_model("initial-exec")));

/*
 * Makes the calling thread record, attaching the process first if need be.
 * NULL when this process does not record (any more).
 */
struct thread *target_enter_slow(uintptr_t stack_pointer);

/* The channel, as this process sees it (view.c). */

/* Maps the header of the channel that `path` opens. False if it is none. */
bool channel_attach(const char *path);

/* Maps what a busy process with more threads and children will need, while that can be done. */
void channel_map_ahead(void);

/* Process (process.c). */

/* This process's slot, from 1; CHANNEL_NONE before it is attached. */
uint32_t process_index(void);

/* Whether this is the process that was attached, and not a child that shares its memory. */
bool process_is_own(void);

/* Set once the program may be confined by seccomp: no system calls from there on (confine.c). */
extern bool process_is_confined;

/* Set in a copy of the process that only tells what the runtimes would release (runtime.c). */
extern bool process_is_copy;

/* In a copy: the runtimes have released all that they keep. */
void process_told_all(void);

/* The strings that make a new process image record, as NAME=VALUE; NULL when this one does not. */
const char *process_preload(void);
const char *process_channel(void);

/* What the C library knows of the calling thread (control.c). */
struct stack_bounds stack_bounds_find(uintptr_t stack_pointer);

/* The thread's id; 0 if it cannot be found out without a system call, and none may be made. */
uint32_t thread_id(void);

/* Threads (thread.c). */

/* Gives the calling thread a slot and memory; NULL if there is none left. */
struct thread *thread_attach(uintptr_t stack_pointer);

/* Whether nobody collects any more. */
bool collector_is_gone(void);

/* Wakes the collector: it should know a process before that is gone again, for one. */
void collector_wake(void);

/*
 * Claims a slot for this process, `pid`, which may wait for one. `parent` is the slot of the
 * process that it is a fork of, at that sequence and step of the thread that forked; or
 * CHANNEL_NONE. CHANNEL_NONE if there is none to be had.
 */
uint32_t slot_claim(uint32_t pid, uint32_t parent, uint64_t parent_sequence, uint64_t parent_steps);

/*
 * Takes a chunk with room for `words`: at once if it is the first of its chain, else in place of
 * the one that is full, waiting while that can help. CHANNEL_NONE if none came.
 */
uint32_t chunk_wait(uint32_t full, size_t words, bool *starving);

/* The process's log of modules (modules.c). */

/* Logs all modules that are there: of a new process image, or again in the child of a fork. */
void modules_begin(uint64_t sequence);
/* A hook of the thread was left by a longjmp; it may have been at work on the log. */
void modules_abandon(const struct thread *thread);
/* Looks which modules are gone, after a dlclose. */
void modules_closed(void);

/* Stamps. */

/* A synchronised step; true when it began a new fragment. */
static inline bool thread_stamp(struct thread *thread)
{
    uint64_t newest = atomic_load_explicit(&target_channel->sequence, memory_order_acquire);
    if (LIKELY(newest == thread->sequence)) {
        thread->steps++;
        return false;
    }
    thread->sequence =
        atomic_fetch_add_explicit(&target_channel->sequence, 1, memory_order_acq_rel) + 1;
    thread->steps = 0;
    return true;
}

/* From here until thread_publish() the collector waits for what we may publish. */
static inline void thread_pending(struct thread *thread)
{
    atomic_store_explicit(&thread->slot->pending, thread->sequence + 1, memory_order_relaxed);
    if (UNLIKELY(target_fences))
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst);
}

static inline void thread_not_pending(struct thread *thread)
{
    atomic_store_explicit(&thread->slot->pending, 0, memory_order_release);
}

/* Captures the stack from `caller` on; it stays valid until the thread's next capture. */
void thread_capture(struct thread *thread, const struct unwind_regs *caller,
                    struct unwind_delta *stack);

/*
 * Appends one record, with a synchronised stamp, and publishes it. Every capture must be followed
 * by one. False when it was lost, and counted, because there is no room.
 */
bool thread_append(struct thread *thread, unsigned operation, const struct unwind_delta *stack,
                   const uint64_t *operands, unsigned count);

/* Both at once. */
static inline bool thread_record(struct thread *thread, unsigned operation,
                                 const struct unwind_regs *caller, const uint64_t *operands,
                                 unsigned count)
{
    struct unwind_delta stack;
    thread_capture(thread, caller, &stack);
    return thread_append(thread, operation, &stack, operands, count);
}

/*
 * Enters a hook: the calling thread if this call is to be recorded, else NULL. A guard left behind
 * by a longjmp or an exception out of a hook is below the stack pointer that we see now.
 */
static inline struct thread *target_enter(void)
{
    struct thread *thread = target_self;
    uintptr_t stack_pointer = (uintptr_t)__builtin_frame_address(0);
    if (UNLIKELY(thread == NULL || target_on->on == 0 || thread->guard != 0)) {
        thread = target_enter_slow(stack_pointer);
        if (thread == NULL)
            return NULL;
    }
    thread->guard = stack_pointer;
    thread->phase = PHASE_CALL;
    atomic_signal_fence(memory_order_seq_cst);
    return thread;
}

/* A malloc that is not recorded because it was called from within a hook. */
static inline void target_nested_malloc(uintptr_t block, size_t size)
{
    struct thread *thread = target_self;
    if (thread == NULL || thread->phase != PHASE_CALL || thread->throwing.operation == 0)
        return;
    thread->throwing.inner_block = block;
    thread->throwing.inner_size = size;
}

static inline void target_leave(struct thread *thread)
{
    atomic_signal_fence(memory_order_seq_cst);
    thread->guard = 0;
}

#endif
