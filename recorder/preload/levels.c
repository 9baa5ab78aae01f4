/* SPDX-License-Identifier: MIT */
/* Calls within calls, and calls that are left: see struct thread in target.h. */
#include <dlfcn.h>
#include <string.h>

#include "hooks.h"

_Atomic uintptr_t level_serving_sites[SERVING_SITES];

static void learn(uintptr_t pc)
{
    if (!level_is_serving(pc))
        atomic_store_explicit(level_serving_site(pc), pc, memory_order_relaxed);
}

static struct unwind_regs caller_of(uintptr_t frame)
{
    const uintptr_t *words = (const uintptr_t *)frame;
    return (struct unwind_regs){.pc = words[1], .sp = frame + 2 * sizeof *words, .bp = words[0]};
}

static void count_lost(const struct thread *level)
{
    while (level->outer != NULL)
        level = level->outer;
    atomic_fetch_add_explicit(&level->slot->lost[LOSS_REENTRANT], 1, memory_order_relaxed);
}

/* Whether the level can record. It must not wait for what waits for a call around it to go on. */
static bool is_ready(struct thread *level)
{
    if (level->slot == NULL && !thread_attach_inner(level))
        return false;
    for (const struct thread *outer = level->outer; outer != NULL; outer = outer->outer)
        if (outer->phase == PHASE_RECORD)
            level->starving = true;
    return true;
}

static void record_acquisition(struct thread *level, unsigned operation,
                               const struct unwind_delta *stack, const uint64_t *operands,
                               unsigned count)
{
    const struct unwind_delta none = {0};
    if (operation != TTD_API_REALLOC && operation != TTD_API_REALLOCARRAY) {
        level->steps++;
        thread_append(level, operation, stack, operands, count);
    } else if (thread_append(level, operation, stack, operands, count - 1)) {
        thread_append(level, OP_REALLOC_END, &none, &operands[count - 1], 1);
    }
}

static void forget_held(struct thread *level)
{
    level->held.block = 0;
    level->held.is_captured = false;
    level->is_special = level->outer != NULL;
}

/* Keeps a signal handler from using a level that no hook runs at. False if one does. */
static bool take(struct thread *level, uintptr_t frame)
{
    if (level->guard != 0)
        return false;
    level->guard = frame;
    target_phase(level, PHASE_RECORD);
    return true;
}

/* The acquisition that `outer` holds is the program's own. */
static void record_held(struct thread *outer)
{
    struct held *held = &outer->held;
    struct unwind_delta none = {0};
    if (held->block == 0)
        return;
    struct thread *level = outer->inner;
    bool is_taken = take(level, (uintptr_t)__builtin_frame_address(0));
    if (held->block == 0)
        ; /* a signal handler has done so meanwhile */
    else if (held->is_captured) {
        record_acquisition(level, held->call.operation, &held->stack, held->call.operands,
                           held->call.count);
    } else if (is_ready(level)) {
        unwinder_reset(level->unwinder);
        record_acquisition(level, held->call.operation, &none, held->call.operands,
                           held->call.count);
    } else {
        count_lost(level);
    }
    if (is_taken)
        level->guard = 0;
    forget_held(outer);
}

/* The call at this level ends with `block`, or 0: then what was acquired meanwhile is its, or not.
 */
static void settle(struct thread *level, uint64_t block)
{
    if (level->held.block == 0)
        return;
    if (level->held.block == block) {
        learn(level->held.site);
        if (level->held.is_captured)
            unwinder_reset(level->inner->unwinder);
        forget_held(level);
    } else {
        record_held(level);
    }
}

/* Keeps an acquisition until it is known whether the call around it returns its block. */
static void keep_held(struct thread *level, unsigned operation, const struct unwind_regs *caller,
                      const uint64_t *operands, unsigned count)
{
    struct thread *outer = level->outer;
    struct held *held = &outer->held;
    if (held->block != 0)
        record_held(outer);
    held->is_captured = !level->serves;
    if (held->is_captured)
        thread_capture(level, caller, &held->stack);
    for (unsigned i = 0; i < count; i++)
        held->call.operands[i] = operands[i];
    held->call.operation = operation;
    held->call.count = count;
    held->site = caller->pc;
    held->block = operands[count - 1];
    outer->is_special = true;
}

void level_acquired(struct thread *level, unsigned operation, const struct unwind_regs *caller,
                    const uint64_t *operands, unsigned count)
{
    uint64_t block = operands[count - 1];
    struct unwind_delta stack;
    if (level->held.block != 0)
        settle(level, block);
    /* A block that is acquired has been released: who releases it now does not serve that. */
    for (struct thread *outer = level->outer; outer != NULL; outer = outer->outer)
        if (outer->released == block)
            outer->released = 0;
    if (level->outer != NULL && level->outer->phase == PHASE_CALL && !level->is_apart) {
        const struct held *held = &level->outer->held;
        if (block == 0)
            return;
        if (held->block == 0 || held->is_captured) {
            keep_held(level, operation, caller, operands, count);
            return;
        }
    }
    if (!is_ready(level)) {
        count_lost(level);
        return;
    }
    thread_capture(level, caller, &stack);
    record_acquisition(level, operation, &stack, operands, count);
}

/* Whether the release at this level is made by the one around it. */
static bool serves_outer(struct thread *level, uint64_t base, uintptr_t site)
{
    struct thread *outer = level->outer;
    if (base == 0 || outer == NULL || outer->phase != PHASE_CALL || level->is_apart)
        return false;
    if (outer->released != base)
        return false;
    outer->released = 0;
    if (!level->serves)
        learn(site);
    return true;
}

bool level_begins(struct thread *level, unsigned operation, const struct unwind_regs *caller,
                  const uint64_t *operands, unsigned count)
{
    level->is_silent = serves_outer(level, operands[0], caller->pc);
    if (level->is_silent)
        return false;
    if (!is_ready(level)) {
        count_lost(level);
        level->is_silent = true;
        return false;
    }
    if (level->outer != NULL && level->outer->held.is_captured) /* by what captures again now */
        record_held(level->outer);
    return thread_record(level, operation, caller, operands, count);
}

void level_ends(struct thread *level, uint64_t block)
{
    settle(level, block);
}

/* Whether the hook that runs at `level` is among the frames that `unwinder` has just captured. */
static enum liveness {
    GONE,
    LIVE,
    UNSEEN
} look_for(const struct thread *level, const struct unwinder *unwinder)
{
    static const void *own; /* this library */
    struct dl_find_object object;
    uintptr_t pc;
    if (own == NULL && _dl_find_object((void *)(uintptr_t)look_for, &object) == 0)
        own = object.dlfo_link_map;
    if (!unwinder_finds(unwinder, level->guard + 2 * sizeof(uintptr_t), &pc))
        return GONE;
    if (pc == 0)
        return UNSEEN;
    return _dl_find_object((void *)pc, &object) == 0 && object.dlfo_link_map == own ? LIVE : GONE;
}

static bool on_own_stack(const struct thread *thread, uintptr_t pointer)
{
    /* The kernel keeps at least this much free below a stack that grows. */
    const uintptr_t growth = thread->stack.grows ? UINT64_C(128) << 20 : 0;
    return pointer >= thread->stack.low - growth && pointer < thread->stack.high;
}

/* Whether it needs no walk to know that the hook which set the guard was left by a jump. */
static bool is_surely_gone(const struct thread *thread, const struct thread *level, uintptr_t frame)
{
    bool guard_own = on_own_stack(thread, level->guard);
    bool now_own = on_own_stack(thread, frame);
    if (guard_own != now_own)
        return now_own; /* otherwise a signal handler on a stack of its own */
    return frame >= level->guard;
}

/* The hook at this level never returns. */
static void leave(struct thread *level)
{
    if (level->phase == PHASE_CALL)
        record_held(level);
    forget_held(level);
    if (level->slot != NULL) {
        thread_not_pending(level);
        atomic_store_explicit(&level->slot->in_release, 0, memory_order_relaxed);
        if (level->phase == PHASE_RECORD) {
            thread_recover(level);
            modules_abandon(target_self);
            count_lost(level);
        }
        /* The collector cannot know how many steps that was: the next one begins a fragment. */
        level->sequence = 0;
    }
    level->call.operation = 0;
    level->released = 0;
    level->guard = 0;
}

/* Leaves this level and all within it, the innermost first. */
static void leave_all(struct thread *level)
{
    if (level->inner != NULL && level->inner->guard != 0)
        leave_all(level->inner);
    leave(level);
}

/* The innermost level whose hook runs; NULL if there is none. */
static struct thread *innermost(struct thread *thread)
{
    struct thread *level = NULL;
    for (; thread != NULL && thread->guard != 0; thread = thread->inner)
        level = thread;
    return level;
}

/* Finds out by a walk from the hook in `frame` which hooks still run. Returns the level for it. */
static struct thread *look_around(struct thread *thread, struct thread *level, uintptr_t frame)
{
    struct unwind_regs caller = caller_of(frame);
    struct unwind_delta stack;
    struct thread *free_level = level;
    take(level, frame);
    if (level->outer->held.is_captured) /* the level's next capture would overwrite it */
        record_held(level->outer);
    if (is_ready(level)) {
        thread_capture(level, &caller, &stack);
        unwinder_reset(level->unwinder);
        for (struct thread *outer = thread; outer != level && free_level == level;
             outer = outer->inner) {
            enum liveness liveness = look_for(outer, level->unwinder);
            if (liveness == UNSEEN)
                level->is_apart = true;
            if (liveness == GONE)
                free_level = outer;
        }
    }
    level->guard = 0;
    if (free_level != level)
        leave_all(free_level);
    free_level->serves = false;
    return free_level;
}

struct thread *level_enter(struct thread *thread, uintptr_t frame, uint64_t base)
{
    for (struct thread *outer = thread; outer != NULL && outer->guard != 0; outer = outer->inner)
        if (is_surely_gone(thread, outer, frame)) {
            leave_all(outer);
            break;
        }
    struct thread *outer = innermost(thread);
    if (outer == NULL)
        return thread;
    struct thread *level = outer->inner;
    if (level == NULL) {
        count_lost(outer);
        return NULL;
    }
    /* What was captured proved that the outer hook runs, and must not be recorded too early. */
    bool is_likely = base != 0 && base == outer->released && outer->held.is_captured;
    if (is_likely)
        learn(caller_of(frame).pc);
    level->serves = outer->phase == PHASE_CALL && level_is_serving(caller_of(frame).pc);
    level->is_apart = false;
    return level->serves ? level : look_around(thread, level, frame);
}

/* An exception, or the end of the thread, unwinds the frame of the innermost hook. */
static void unwound(struct thread *level)
{
    if (level->phase == PHASE_CALL) {
        struct acquisition *call = &level->call;
        record_held(level);
        target_phase(level, PHASE_RECORD);
        if (call->operation != 0 && level->outer == NULL) {
            struct unwind_regs caller = caller_of(level->guard);
            struct unwind_delta stack;
            thread_capture(level, &caller, &stack);
            record_acquisition(level, call->operation, &stack, call->operands, call->count);
        }
        target_phase(level, PHASE_CALL);
    }
    leave(level);
}

/*
 * Of all hooks: unwinders call it for each of their frames, of which the first is that of the
 * innermost hook. There is nothing to clean up there but what we keep.
 */
int level_personality(int version, int actions, uint64_t language, void *exception, void *context)
{
    enum { CLEANUP_PHASE = 2, CONTINUE_UNWIND = 8 };
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    struct thread *thread = target_self, *level;
    (void)version, (void)language, (void)exception, (void)context;
    if ((actions & CLEANUP_PHASE) == 0 || thread == NULL || target_on->on == 0)
        return CONTINUE_UNWIND;
    while ((level = innermost(thread)) != NULL && is_surely_gone(thread, level, frame))
        leave(level);
    if (level != NULL)
        unwound(level);
    return CONTINUE_UNWIND;
}
