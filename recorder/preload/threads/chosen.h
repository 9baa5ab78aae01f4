/* SPDX-License-Identifier: MIT */
/**
 * The blocks that are recorded, if not all are: blocks of a size and above, or a sample. A set of
 * their addresses decides at a release whether the block was recorded.
 */
#ifndef RECORDER_PRELOAD_THREADS_CHOSEN_H
#define RECORDER_PRELOAD_THREADS_CHOSEN_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/threads/stale_stack.h"
#include "preload/threads/recorded_thread.h"

/** The facts about a function, from its row of TTD_APIS: enum ttd_api_effect, enum ttd_api_family,
 * and the indexes of the operands whose product is the size. */
struct call_facts {
    uint8_t effect, family, size, count;
};

/** Returns no facts for an operation that is no function. */
struct call_facts call_facts_of(unsigned operation);

/** Makes the set, if not all blocks are recorded. False if there is no memory. */
bool chosen_begin(void);

/** How a call is recorded. */
enum chosen_part {
    CHOSEN_NONE,
    CHOSEN_WHOLE,
    CHOSEN_RELEASE, /* of a reallocation, as a free() */
};

enum call_kind { ACQUIRES, RELEASES, REALLOCATES, RESIZES, OTHER };

/** Returns the kind of call that an operation is. */
enum call_kind chosen_kind_of(unsigned operation);

/**
 * Decides how thread_record() records a call. The step of an acquisition that is not recorded is
 * taken back; a release that is not recorded makes the level silent.
 */
enum chosen_part chosen_call(struct thread *level, unsigned operation,
                             const struct unwind_regs *caller, const uint64_t *operands,
                             unsigned count);

/** Decides whether the acquisition of the last operand is recorded. */
bool chosen_acquires(struct thread *level, unsigned operation, const uint64_t *operands,
                     unsigned count);

/** Ends the reallocation that chosen_call() has decided about; it returns `block`. */
void chosen_reallocated(struct thread *level, uint64_t block);

/** Whether a block that is released is a recorded one; it is then forgotten. */
bool chosen_release(uint64_t block);

/** Forgets a block whose release is not recorded, or 0: a later block may get its address. */
void chosen_forget(uint64_t block);

/*
 * The short way of a hook, for the many calls that are not recorded: a filter in front of the set
 * and a countdown, before the thread enters the hook. Where it gives no answer, the hook does all
 * its usual steps, and thread_record() decides.
 *
 * The filter goes by places in memory and not by a hash: the blocks that a program uses at a time
 * lie near each other, and so do their numbers. A line of the cache has those of 8 kB.
 *
 * The countdown of a sample is a word of the thread. It is 0, and the short way gives no answer,
 * while a hook of the thread runs that records, before the thread records, and while it is
 * suspended; so nothing else need be looked at. It is changed by single instructions only: a signal
 * handler may allocate at any moment.
 */

enum { CHOSEN_FILTER_BITS = 16, CHOSEN_PLACE_BITS = 7 };

/** Numbers of recorded blocks, by their places. Those of the arena are never 0. */
extern HIDDEN _Atomic uint8_t chosen_filter[1 << CHOSEN_FILTER_BITS];

/** Size of the smallest blocks that are recorded, if blocks are not sampled; else 0. */
extern HIDDEN uint64_t chosen_least;

static inline _Atomic uint8_t *chosen_filter_of(uint64_t block)
{
    return &chosen_filter[block >> CHOSEN_PLACE_BITS & ((1 << CHOSEN_FILTER_BITS) - 1)];
}

/** Whether a block may be a recorded one. */
static inline bool chosen_may_have(const void *block)
{
    return atomic_load_explicit(chosen_filter_of((uintptr_t)block), memory_order_relaxed) != 0;
}

/** Whether a block is a recorded one. */
bool chosen_has(const void *block);

#ifndef TTD_ATTACHED
/** Whether an acquisition of this size is not recorded, as far as the countdown of a sample says.
 * It then counts. */
static inline __attribute__((always_inline)) bool chosen_counts(uint64_t size)
{
    __asm__ goto("subq %0, %1\n\t"
                 "jbe %l2"
                 :
                 : "r"(size), "m"(thread_locals.until_look)
                 : "cc", "memory"
                 : look);
    return true;
look:
    __asm__ volatile("addq %1, %0" : "+m"(thread_locals.until_look) : "r"(size) : "cc");
    return false;
}
#endif

/** A function that asks for the address of its frame has one, at a cost. */
static inline __attribute__((always_inline)) uintptr_t chosen_stack_pointer(void)
{
    uintptr_t pointer;
    __asm__("mov %%rsp, %0" : "=r"(pointer));
    return pointer;
}

/** Whether an acquisition of this size is not recorded. It then counts for the sample. */
static inline __attribute__((always_inline)) bool chosen_skips(uint64_t size)
{
    struct thread *thread = stale_self();
    if (UNLIKELY(!thread))
        return false;
    if (UNLIKELY(thread->guard != 0))
        return thread->phase == PHASE_SKIP && chosen_stack_pointer() < thread->guard;
    if (size < chosen_least)
        return true;
    thread_look_again(thread);
    int64_t until = thread->until_sample;
    if ((int64_t)size < 0 || until <= (int64_t)size)
        return false;
#ifdef TTD_ATTACHED
    thread->until_sample = until - (int64_t)size;
#else
    thread->until_sample = 0;
    thread_locals.until_look = (uint64_t)(until - (int64_t)size);
#endif
    return true;
}

#ifndef TTD_ATTACHED
/**
 * Enters the hook of a skipped call that makes other calls; those are then not counted again. A
 * jump out of it is noticed as that out of any other hook. Returns NULL within such a hook. Sets
 * `until` for chosen_leave_skipped().
 */
static inline __attribute__((always_inline)) struct thread *chosen_enter_skipped(uint64_t *until)
{
    struct thread *thread = target_self;
    *until = thread_locals.until_look;
    if (thread->guard != 0)
        return NULL;
    thread->guard = (uintptr_t)__builtin_frame_address(0);
    target_phase(thread, PHASE_SKIP);
    return thread;
}

/** Leaves it, and takes back what calls within it have counted; not if a hook has recorded
 * meanwhile. */
static inline __attribute__((always_inline)) void chosen_leave_skipped(struct thread *thread,
                                                                       uint64_t until)
{
    if (!thread_is_looking())
        thread_locals.until_look = until;
    target_leave(thread);
}
#endif

#endif
