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
    PHASE_CALL,   /* the allocator runs */
    PHASE_RECORD, /* we run: a call now comes from a signal handler */
};

/* The part of the address space where a thread's stack may be read: [low, high). */
struct stack_bounds {
    uintptr_t low;
    uintptr_t high;
    bool grows; /* downwards, beyond low: the first thread's */
};

enum { ACQUISITION_OPERANDS = 5, LEVELS = 8 };

/* An acquisition: its operation, and its operands, of which the last is the block. */
struct acquisition {
    unsigned operation; /* 0 for none */
    unsigned count;
    uint64_t operands[ACQUISITION_OPERANDS];
};

/* An acquisition within a call, which may or may not be the one that serves that call. */
struct held {
    uint64_t block; /* 0 for none */
    uintptr_t site; /* its return address */
    bool is_captured;
    struct acquisition call;
    struct unwind_delta stack; /* of the inner level's unwinder, if it was captured */
};

/*
 * A recording thread, at one of its levels. Level 0 records the thread's calls; it is indexed by
 * the thread's slot, and used again when the collector has freed the slot.
 *
 * A call within a call of the same thread is at the next level. It is made by the allocator, the
 * C++ runtime, a std::new_handler, or a signal handler. Wherever it comes from, it serves the call
 * around it, and is part of that, if it acquires the block which that one returns or releases the
 * block which that one releases. Any other is a call like all others. It is recorded by a slot of
 * its level, as if by another thread, since level 0 may be interrupted at any point.
 *
 * A level is left by the end of its hook, by an exception or the end of the thread, of which the
 * unwinder tells us, or by a longjmp. That is noticed by the next call, whose walk misses the hook.
 */
struct thread {
    uintptr_t guard; /* frame of the hook that is running, 0 for none */
    enum phase phase;
    bool starving;     /* a wait for a free chunk was in vain: do not wait again */
    bool is_special;   /* an inner level, or one that has held something */
    bool serves;       /* an inner level: its call comes from where those come that serve others */
    bool is_apart;     /* an inner level: nobody knows whether the hooks around it still run */
    bool is_silent;    /* an inner level: its release is not recorded */
    bool is_switching; /* which of two chunks is the last of the chain is not certain */
    uint64_t released; /* the block that the running hook releases, or 0 */
    uint64_t *write;
    uint64_t *limit;
    uint64_t *data; /* of the chunk; NULL when there is none */
    struct chunk *chunk;
    uint32_t chunk_index; /* CHANNEL_NONE when there is none */
    uint32_t slot_index;
    struct thread_slot *slot; /* NULL for an inner level that has not recorded yet */
    uint64_t sequence;
    uint64_t steps;
    uint64_t clock;
    struct stack_bounds stack; /* level 0 only */
    struct unwinder *unwinder;
    struct acquisition call; /* an operator new that may be left by an exception */
    struct held held;
    struct thread *outer; /* NULL for level 0 */
    struct thread *inner; /* NULL for the last */
};

/* Reads 0 in the child of a fork, by MADV_WIPEONFORK, and stays 1 in that of a vfork. */
struct on_page {
    uint32_t on;
    /* The collector has refused this process: it is not to begin again. */
    uint32_t refused;
    /* The `sequence` of the process's slot, whose `mark` leads here. */
    uint64_t mark;
};

extern struct channel *target_channel;
extern struct channel_view target_view;
extern struct on_page *target_on;
/* Set when the system has no expedited membarrier: the collector then relies on our own fence. */
extern bool target_fences;

extern __thread struct thread *target_self __attribute__((tls_model("initial-exec")));

/*
 * Makes the calling thread record, attaching the process first if need be; at an inner level if
 * another hook is running. NULL when this process does not record (any more).
 */
struct thread *target_enter_slow(uintptr_t frame, uint64_t base);

/* The channel, as this process sees it (view.c). */

/* Maps the header of the channel that `path` opens. False if it is none. */
bool channel_attach(const char *path);

/* Set when a window could not be mapped: to wait for what lies there is of no use. */
extern _Atomic bool channel_is_short;

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

/* Tells the collector what the process does: enum process_notes. */
void process_note(uint32_t note);

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

/* Gives an inner level a slot and memory. False if there is none left. */
bool thread_attach_inner(struct thread *level);

/* A hook at this level was left by a jump out of PHASE_RECORD: makes it fit to record again. */
void thread_recover(struct thread *level);

/* Levels (levels.c). */

/* The level for a call, from the hook with this frame, while another hook of the thread runs or
 * was left; NULL if there are no more. The call releases `base`, or 0. */
struct thread *level_enter(struct thread *thread, uintptr_t frame, uint64_t base);

/* An acquisition has returned at a special level; its block is the last operand. */
void level_acquired(struct thread *level, unsigned operation, const struct unwind_regs *caller,
                    const uint64_t *operands, unsigned count);

/* A release or reallocation of the first operand begins at an inner level. False if it is not
 * recorded. */
bool level_begins(struct thread *level, unsigned operation, const struct unwind_regs *caller,
                  const uint64_t *operands, unsigned count);

/* A release or reallocation ends at a special level, with that block or 0. */
void level_ends(struct thread *level, uint64_t block);

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

/* Captures the stack from `caller` on; it stays valid until the thread's next capture. Like
 * thread_append() in PHASE_RECORD only. */
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
 * Return addresses from which the allocator and the C++ runtime make the calls that serve others; a
 * hash table of those that were proved to be such. One that is missing costs a walk, and no more.
 */
enum { SERVING_SITES = 64 };
extern _Atomic uintptr_t level_serving_sites[SERVING_SITES];

static inline _Atomic uintptr_t *level_serving_site(uintptr_t pc)
{
    return &level_serving_sites[(pc ^ pc >> 6) % SERVING_SITES];
}

static inline bool level_is_serving(uintptr_t pc)
{
    return atomic_load_explicit(level_serving_site(pc), memory_order_relaxed) == pc;
}

/* The level for a call that serves that of `thread`, as nearly all calls within calls do. */
static inline struct thread *level_enter_serving(const struct thread *thread, uintptr_t frame,
                                                 uintptr_t pc)
{
    struct thread *level = thread->inner;
    if (thread->phase != PHASE_CALL || frame >= thread->guard || level->guard != 0 ||
        !level_is_serving(pc))
        return NULL;
    level->serves = true;
    level->is_apart = false;
    return level;
}

/* Whether what a level held has served the acquisition of `block`, and is forgotten. */
static inline bool level_was_served(struct thread *level, uint64_t block)
{
    if (level->outer != NULL || level->held.block != block || level->held.is_captured)
        return false;
    level->held.block = 0;
    level->is_special = false;
    return true;
}

/* Enters a hook that releases `base`, or 0: the level at which it is to be recorded, or NULL. */
static inline struct thread *target_enter(uint64_t base)
{
    struct thread *thread = target_self;
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    if (UNLIKELY(thread == NULL || target_on->on == 0 || thread->guard != 0)) {
        struct thread *level = NULL;
        if (LIKELY(thread != NULL && target_on->on != 0))
            level = level_enter_serving(thread, frame, (uintptr_t)__builtin_return_address(0));
        thread = level != NULL ? level : target_enter_slow(frame, base);
        if (thread == NULL)
            return NULL;
    }
    thread->guard = frame;
    thread->phase = PHASE_CALL;
    atomic_signal_fence(memory_order_seq_cst);
    return thread;
}

/* Says where the thread is in its hook. */
static inline void target_phase(struct thread *thread, enum phase phase)
{
    atomic_signal_fence(memory_order_seq_cst);
    thread->phase = phase;
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void target_leave(struct thread *thread)
{
    atomic_signal_fence(memory_order_seq_cst);
    thread->guard = 0;
}

#endif
