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

/*
 * The short way of a hook, for the many calls that are not recorded: a filter in front of the set
 * and a countdown, before the thread enters the hook. Where it gives no answer, the hook does all
 * its usual steps, and thread_record() decides.
 */

enum { CHOSEN_FILTER_BITS = 14 };

/** Numbers of recorded blocks, by the upper bits of their hash. */
extern HIDDEN _Atomic uint8_t chosen_filter[1 << CHOSEN_FILTER_BITS];

/** Size of the smallest blocks that are recorded, if blocks are not sampled; else 0. */
extern HIDDEN uint64_t chosen_least;

static inline uint64_t chosen_hash(uint64_t block)
{
    return block * UINT64_C(0x9E3779B97F4A7C15);
}

static inline _Atomic uint8_t *chosen_filter_of(uint64_t block)
{
    return &chosen_filter[chosen_hash(block) >> (64 - CHOSEN_FILTER_BITS)];
}

/** Whether a block may be a recorded one. */
static inline bool chosen_may_have(const void *block)
{
    return atomic_load_explicit(chosen_filter_of((uintptr_t)block), memory_order_relaxed) != 0;
}

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
    if ((int64_t)size < 0 || thread->until_sample <= (int64_t)size)
        return false;
    thread->until_sample -= (int64_t)size;
    return true;
}

/** Whether a reallocation is not recorded, neither as a release nor as an acquisition. */
static inline __attribute__((always_inline)) bool chosen_skips_both(const void *base, uint64_t size)
{
    return !chosen_may_have(base) && chosen_skips(size);
}

/**
 * Enters the hook of a skipped call that makes other calls; those are then not counted again. A
 * jump out of it is noticed as that out of any other hook. Returns NULL within such a hook.
 */
static inline __attribute__((always_inline)) struct thread *chosen_enter_skipped(void)
{
    struct thread *thread = stale_self();
    if (thread->guard != 0)
        return NULL;
    thread->guard = (uintptr_t)__builtin_frame_address(0);
    target_phase(thread, PHASE_SKIP);
    return thread;
}

#endif
