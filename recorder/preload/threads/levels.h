/* SPDX-License-Identifier: MIT */
/** Chooses the level that a hook records at: see struct thread. */
#ifndef RECORDER_PRELOAD_THREADS_LEVELS_H
#define RECORDER_PRELOAD_THREADS_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/threads/internal.h"
#include "preload/threads/stale_stack.h"
#include "preload/threads/recorded_thread.h"

/**
 * Returns the level that the hook with this frame records at; attaches the thread and the process
 * first if need be. NULL when this process does not record (any more).
 */
struct thread *target_enter_slow(uintptr_t frame, uint64_t base);

/**
 * Returns the level for a call that releases `base`, or 0, from the hook with this frame, while
 * another hook of the thread runs or was left. NULL, with the call counted as lost, when no level
 * is free.
 */
struct thread *level_enter(struct thread *thread, uintptr_t frame, uint64_t base);

/** The next step of a hook whose acquisition at a special level has returned. It is up to the hook,
 * so that the functions need the stack one after the other: it may be small. */
enum level_next { LEVEL_SKIPS, LEVEL_HOLDS, LEVEL_RECORDS };

/** Ends an acquisition of `block` at a special level. */
enum level_next level_acquired(struct thread *level, uint64_t block);

/** Holds an acquisition until it is known whether the call around it returns its block (the last
 * operand). */
void level_hold(struct thread *level, unsigned operation, const struct unwind_regs *caller,
                const uint64_t *operands, unsigned count);

/** Begins a release or reallocation of `base` at a special level, called from `site`. False if it
 * is not to be recorded. */
bool level_begins(struct thread *level, uint64_t base, uintptr_t site);

/** Ends a release, or a reallocation that returns `block`, at a special level. */
void level_ends(struct thread *level, uint64_t block);

/**
 * The serving sites: return addresses, in the allocator and the C++ runtime, of calls that were
 * seen to serve the call around them. A hash table; a site that is missing costs a walk, and no
 * more.
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

/** Returns the level for a call that serves the call of `thread`, as nearly all calls within calls
 * do. */
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

/** Whether the acquisition that a level holds has served the acquisition of `block`. It is then
 * dropped. */
static inline bool level_was_served(struct thread *level, uint64_t block)
{
    if (level->outer || level->held.block != block || level->held.is_captured || level->has_early)
        return false;
    level->held.block = 0;
    level->is_special = false;
    return true;
}

/** Enters a hook that releases `base`, or 0. Returns the level that it is recorded at, or NULL. The
 * frame is the hook's. */
static inline __attribute__((always_inline)) struct thread *target_enter(uint64_t base)
{
    if (UNLIKELY(internal_is_call((uintptr_t)__builtin_return_address(0))))
        return NULL;
    struct thread *thread = stale_self();
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    if (UNLIKELY(!thread || target_on->on == 0 || thread->guard != 0 || !thread_is_looking())) {
        struct thread *level = NULL;
        if (thread)
            thread_look_again(thread);
        if (LIKELY(thread && target_on->on != 0))
            level = level_enter_serving(thread, frame, (uintptr_t)__builtin_return_address(0));
        thread = level ? level : target_enter_slow(frame, base);
        if (!thread)
            return NULL;
    }
    thread->guard = frame;
    thread->phase = PHASE_CALL;
    atomic_signal_fence(memory_order_seq_cst);
    return thread;
}

/** The personality of all hooks: frees the level of a hook that is unwound. */
int level_personality(int version, int actions, uint64_t language, void *exception, void *context);

/** Notes that the calls from `pc` serve the call around them. */
void level_learn(uintptr_t pc);

/** Counts a call that could not be recorded, at level 0. */
void level_count_lost(const struct thread *level);

/**
 * Whether the level can record. If a call around it is being recorded, it will not wait for a
 * chunk: that call could not go on meanwhile.
 */
bool level_is_ready(struct thread *level);

/** Claims a level that no hook runs at, so that signal handlers use the next one; the caller sets
 * its guard to 0 afterwards. False if a hook runs at it. */
bool level_take(struct thread *level, uintptr_t frame);

/** Appends the record of an acquisition, or both of a reallocation's. */
void level_record(struct thread *level, unsigned operation, const struct unwind_delta *stack,
                  const uint64_t *operands, unsigned count);

/** Records the acquisition that `outer` holds, if any: it does not serve the call at `outer`. */
void level_record_held(struct thread *outer);

/** Drops the acquisition that the level holds. */
void level_forget_held(struct thread *level);

/** Forgets the early acquisitions of the level's ended call. */
void level_forget_early(struct thread *level);

#endif
