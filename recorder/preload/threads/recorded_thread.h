/* SPDX-License-Identifier: MIT */
/** A recording thread: where it is within a hook, its stamps and its records. */
#ifndef RECORDER_PRELOAD_THREADS_RECORDED_THREAD_H
#define RECORDER_PRELOAD_THREADS_RECORDED_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "channel_record.h"
#include "preload/channel/target.h"
#include "preload/unwind/unwind.h"
#ifdef TTD_ATTACHED
#include "attached.h"
#endif

/** The part of a hook that a thread executes. */
enum phase {
    PHASE_OUT,    /* no hook */
    PHASE_CALL,   /* the real allocator */
    PHASE_SKIP,   /* the real allocator, in a call that is not recorded: see chosen.h */
    PHASE_RECORD, /* code of this library: a call within it comes from a signal handler */
};

enum { ACQUISITION_OPERANDS = 5, LEVELS = 8 };

/** An unbroken stretch of recording in one thread: see island.h. */
struct island {
    bool is_open;
    bool is_off;        /* the thread is suspended, and the trace says so */
    uint32_t pauses;    /* that the program has begun and not ended */
    uint64_t client[2]; /* the GUID of the client that opened it; 0 for none */
    uint64_t activity;
    uint64_t maximum;   /* calls to be recorded, at most */
    uint64_t remaining; /* of these */
    uint64_t skipped;   /* LOSS_OFF of the thread's slot, as far as the trace has it */
};

/** The operation of an acquisition and its operands; the last operand is the block. */
struct acquisition {
    unsigned operation; /* 0 for none */
    unsigned count;
    uint64_t operands[ACQUISITION_OPERANDS];
};

/** An acquisition within a call, held until that call returns: only then is it known whether it has
 * served that call. */
struct held {
    uint64_t block;   /* 0 for none */
    uintptr_t site;   /* return address of the acquisition */
    bool is_captured; /* `stack` is set */
    struct acquisition call;
    struct unwind_delta stack; /* of the inner level's unwinder, if it was captured */
};

/** An acquisition within a call that was recorded while the call went on, since another call within
 * it came: should it have served the call after all, its block is released when that acquires it.
 */
struct early {
    uint64_t block; /* 0 for none, or if it has been released */
    unsigned operation;
};

enum { EARLY_ACQUISITIONS = 4 };

/** The decision about the running reallocation, if not all blocks are recorded. */
struct chosen {
    bool is_known;  /* the old block is recorded */
    bool is_wanted; /* the new block is to be recorded */
    uint64_t size;
    uint64_t base;
    struct unwind_regs caller;
};

/**
 * A recording thread, at one of its levels. Level 0 records the thread's calls; it is indexed by
 * the thread's slot, and used again when the collector has freed the slot.
 *
 * A call within a call of the same thread is at the next level. It is made by the allocator, the
 * C++ runtime, a std::new_handler, or a signal handler. Wherever it comes from, it serves the call
 * around it, and is part of that, if it acquires the block that the outer call returns or releases
 * the block that the outer call releases. Any other call is independent. It is recorded by a slot
 * of its level, as if by another thread, since level 0 may be interrupted at any point.
 *
 * A level is left when its hook returns; when an exception or the end of the thread unwinds the
 * hook (the personality of its frame reports it); or by a longjmp: the next call notices it because
 * the hook is missing from its stack.
 */
struct thread {
    uintptr_t guard; /* frame of the hook that is running, 0 for none */
    enum phase phase;
    bool starving;     /* the last wait for a free chunk was in vain: do not wait again */
    bool is_special;   /* an inner level, or one that holds an acquisition or has early ones */
    bool serves;       /* an inner level: its call comes from a serving site (levels.h) */
    bool is_apart;     /* an inner level: it is unknown whether the hooks around it still run */
    bool is_silent;    /* an inner level: its release is not recorded */
    bool is_switching; /* between two chunks: the end of the chain is not known */
    uint64_t released; /* the block that the running hook releases, or 0 */
    uint64_t *write;
    uint64_t *limit;
    uint64_t *data; /* of `chunk`; NULL when there is none */
    struct chunk *chunk;
    uint32_t chunk_index; /* CHANNEL_NONE when there is none */
    uint32_t slot_index;
    struct thread_slot *slot; /* NULL for an inner level that has not recorded yet */
    uint64_t sequence;
    uint64_t steps;
    uint64_t clock;
    struct stack_bounds stack; /* level 0 only */
    struct island island;      /* the one of level 0 counts */
    struct unwinder *unwinder;
    void *signal_stack;      /* level 0 only: see signal_stack_give() */
    uint64_t handle;         /* level 0 only: the pthread_t */
    struct acquisition call; /* an operator new that may be left by an exception */
    struct held held;
    struct chosen chosen;
    uint64_t random;      /* state of the generator of random numbers; 0 before the first one */
    int64_t until_sample; /* bytes up to the next block that is recorded; 0 if not yet chosen */
    bool has_early;
    struct early early[EARLY_ACQUISITIONS]; /* of the running call */
    struct thread *outer;                   /* NULL for level 0 */
    struct thread *inner;                   /* NULL for the last */
};

/** The data of the calling thread. */
struct thread_locals {
#ifdef TTD_ATTACHED
    struct attached_thread attached;
#endif
    struct thread *self;
    struct thread *suspended; /* see island.h */
#ifndef TTD_ATTACHED
    /** If blocks are sampled, bytes that the thread may allocate before it looks again whether a
     * block is recorded; the thread's until_sample has the rest. 0 while a hook is to be entered
     * for any allocation: see chosen.h. */
    uint64_t until_look;
#endif
};

extern __thread struct thread_locals thread_locals __attribute__((tls_model("initial-exec")));
#define target_self thread_locals.self

/** Gives the calling thread a slot and memory; NULL if none is left. */
struct thread *thread_attach(uintptr_t stack_pointer);

/** Returns the unwinder of a level; an inner level has none before it records; NULL if there is no
 * memory. */
struct unwinder *thread_unwinder(struct thread *level);

/** Notes the name that the program gives a thread, by its pthread_t; 0 for the calling thread. */
void thread_rename(uint64_t handle, const char *name);

/** Gives an inner level a slot and memory. False if none is left. */
bool thread_attach_inner(struct thread *level);

/** Makes a level usable again whose hook was left by a jump out of PHASE_RECORD. */
void thread_recover(struct thread *level);

/* Stamps. */

/** Takes a synchronised step. True if it began a new fragment. */
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

/** Until thread_not_pending() the collector waits for records that this thread may publish. */
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

/**
 * Appends one record, with a synchronised stamp, and publishes it. Every capture must be followed
 * by one. False when it was lost, and counted, because there is no room.
 */
bool thread_append(struct thread *thread, unsigned operation, const struct unwind_delta *stack,
                   const uint64_t *operands, unsigned count);

/** The data of an event: words that the format defines, then the user's. */
struct event_data {
    const uint64_t *fields;
    size_t field_count;
    const void *data;
    size_t size;
};

/** Appends an event of the live API, as thread_append() does a call. It has no stack. */
bool thread_append_event(struct thread *thread, const uint64_t client[2], uint32_t flags,
                         const struct event_data *data);

/** Whether the stack of a call is recorded, if not all are. */
bool thread_has_stack(unsigned operation);

/** Reduces a captured stack to the part of it that is recorded, if not all is. */
void thread_reduce_stack(struct thread *thread, unsigned operation, struct unwind_delta *stack);

/** Captures the stack from `caller` on; it is valid until the thread's next capture. Only in
 * PHASE_RECORD, like thread_append(). `stack` is as a record of the operation has it, which may be
 * empty or the innermost frames. */
static inline void thread_capture(struct thread *thread, unsigned operation,
                                  const struct unwind_regs *caller, struct unwind_delta *stack)
{
    unwinder_capture(thread->unwinder, caller, stack);
    if (UNLIKELY((target_channel->flags & CHANNEL_FEW_STACKS) != 0))
        thread_reduce_stack(thread, operation, stack);
}

/** Decides about a call and records it, if not all blocks are recorded. */
bool thread_record_chosen(struct thread *thread, unsigned operation,
                          const struct unwind_regs *caller, const uint64_t *operands,
                          unsigned count);

/** Captures the stack and appends the record. */
static inline bool thread_record(struct thread *thread, unsigned operation,
                                 const struct unwind_regs *caller, const uint64_t *operands,
                                 unsigned count)
{
    struct unwind_delta stack;
    uint32_t flags = target_channel->flags;
    bool is_usual = LIKELY((flags & (CHANNEL_FEW_STACKS | CHANNEL_CHOOSES)) == 0);
    if (!is_usual && (flags & CHANNEL_CHOOSES) != 0)
        return thread_record_chosen(thread, operation, caller, operands, count);
    if (is_usual || thread_has_stack(operation))
        unwinder_capture(thread->unwinder, caller, &stack);
    else
        stack = (struct unwind_delta){0};
    if (!is_usual)
        thread_reduce_stack(thread, operation, &stack);
    return thread_append(thread, operation, &stack, operands, count);
}

/** Takes back the bytes that the calling thread may allocate without a look, at level 0. */
static inline void thread_look_again(struct thread *thread)
{
#ifdef TTD_ATTACHED
    (void)thread;
#else
    thread->until_sample += (int64_t)thread_locals.until_look;
    thread_locals.until_look = 0;
#endif
}

/** Whether there are such bytes. */
static inline bool thread_is_looking(void)
{
#ifdef TTD_ATTACHED
    return true;
#else
    return thread_locals.until_look == 0;
#endif
}

/** Notes the part of its hook that the thread enters. */
static inline void target_phase(struct thread *thread, enum phase phase)
{
    atomic_signal_fence(memory_order_seq_cst);
    thread->phase = phase;
    atomic_signal_fence(memory_order_seq_cst);
}

/** Leaves the hook. */
static inline void target_leave(struct thread *thread)
{
    atomic_signal_fence(memory_order_seq_cst);
    thread->guard = 0;
}

#endif
