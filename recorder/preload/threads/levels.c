/* SPDX-License-Identifier: MIT */
/* Finds the hooks of a thread that still run, and frees the levels of those left by a jump. */
#include "preload/threads/levels.h"

#include <dlfcn.h>

static struct unwind_regs levels_caller_of(uintptr_t frame)
{
    const uintptr_t *words = (const uintptr_t *)frame;
    return (struct unwind_regs){.pc = words[1], .sp = frame + 2 * sizeof *words, .bp = words[0]};
}

/* Whether the hook that runs at `level` is among the frames that `unwinder` has just captured. */
static enum liveness {
    GONE,
    LIVE,
    UNSEEN
} look_for(const struct thread *level, const struct unwinder *unwinder)
{
    static const void *own_module; /* this library */
    struct dl_find_object object;
    uintptr_t pc;
    if (!own_module && _dl_find_object((void *)(uintptr_t)look_for, &object) == 0)
        own_module = object.dlfo_link_map;
    if (!unwinder_finds(unwinder, level->guard + 2 * sizeof(uintptr_t), &pc))
        return GONE;
    if (pc == 0)
        return UNSEEN;
    return _dl_find_object((void *)pc, &object) == 0 && object.dlfo_link_map == own_module ? LIVE
                                                                                           : GONE;
}

static bool levels_on_own_stack(const struct thread *thread, uintptr_t pointer)
{
    /* The kernel keeps at least this much free below a stack that grows. */
    const uintptr_t growth = thread->stack.grows ? UINT64_C(128) << 20 : 0;
    return pointer >= thread->stack.low - growth && pointer < thread->stack.high;
}

/* Whether the positions of the two frames alone prove that the level's hook was left by a jump. */
static bool levels_is_surely_gone(const struct thread *thread, const struct thread *level,
                                  uintptr_t frame)
{
    bool guard_own = levels_on_own_stack(thread, level->guard);
    bool now_own = levels_on_own_stack(thread, frame);
    if (guard_own != now_own)
        return now_own; /* otherwise a signal handler on a stack of its own */
    /* Two frames on other stacks may be on different ones: their order proves nothing. */
    return now_own && frame >= level->guard;
}

/* Frees the level of a hook that never returns. */
static void levels_leave(struct thread *level)
{
    if (level->phase == PHASE_CALL)
        level_record_held(level);
    level_forget_early(level);
    level_forget_held(level);
    if (level->slot) {
        thread_not_pending(level);
        atomic_store_explicit(&level->slot->in_release, 0, memory_order_relaxed);
        if (level->phase == PHASE_RECORD) {
            thread_recover(level);
            modules_abandon(target_self);
            level_count_lost(level);
        }
        /* The collector cannot know how many steps the hook took: the next one begins a fragment.
         */
        level->sequence = 0;
    }
    level->call.operation = 0;
    level->chosen = (struct chosen){0};
    level->released = 0;
    level->guard = 0;
}

/* Frees this level and all within it, the innermost first. */
static void levels_leave_all(struct thread *level)
{
    if (level->inner && level->inner->guard != 0)
        levels_leave_all(level->inner);
    levels_leave(level);
}

/* Returns the innermost level whose hook runs; NULL if there is none. */
static struct thread *levels_innermost(struct thread *thread)
{
    struct thread *level = NULL;
    for (; thread && thread->guard != 0; thread = thread->inner)
        level = thread;
    return level;
}

/* Walks the stack from the hook in `frame` to find the hooks that still run. Returns the level for
 * it.
 */
static struct thread *levels_look_around(struct thread *thread, struct thread *level,
                                         uintptr_t frame)
{
    struct unwind_regs caller = levels_caller_of(frame);
    struct unwind_delta stack;
    struct thread *free_level = level;
    level_take(level, frame);
    if (level->outer->held.is_captured) /* the level's next capture would overwrite it */
        level_record_held(level->outer);
    if (level_is_ready(level)) {
        unwinder_capture(level->unwinder, &caller, &stack);
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
        levels_leave_all(free_level);
    free_level->serves = false;
    return free_level;
}

struct thread *level_enter(struct thread *thread, uintptr_t frame, uint64_t base)
{
    for (struct thread *outer = thread; outer && outer->guard != 0; outer = outer->inner)
        if (levels_is_surely_gone(thread, outer, frame)) {
            levels_leave_all(outer);
            break;
        }
    struct thread *outer = levels_innermost(thread);
    if (!outer)
        return thread;
    struct thread *level = outer->inner;
    if (!level) {
        level_count_lost(outer);
        return NULL;
    }
    /* The capture that is held proved that the outer hook runs; a second walk would record it too
       early. */
    bool is_likely = base != 0 && base == outer->released && outer->held.is_captured;
    if (is_likely)
        level_learn(levels_caller_of(frame).pc);
    level->serves = outer->phase == PHASE_CALL && level_is_serving(levels_caller_of(frame).pc);
    level->is_apart = false;
    return level->serves ? level : levels_look_around(thread, level, frame);
}

/* Frees the level of the innermost hook, whose frame an exception or the end of the thread unwinds.
 * An operator new that failed is recorded first. */
static void levels_unwound(struct thread *level)
{
    if (level->phase == PHASE_CALL) {
        struct acquisition *call = &level->call;
        level_record_held(level);
        target_phase(level, PHASE_RECORD);
        if (call->operation != 0 && !level->outer) {
            struct unwind_regs caller = levels_caller_of(level->guard);
            struct unwind_delta stack;
            thread_capture(level, call->operation, &caller, &stack);
            level_record(level, call->operation, &stack, call->operands, call->count);
        }
        target_phase(level, PHASE_CALL);
    }
    levels_leave(level);
}

/*
 * The personality of all hooks. An unwinder calls it for each frame of a hook that it unwinds, from
 * the innermost on; it only frees the hook's level.
 */
int level_personality(int version, int actions, uint64_t language, void *exception, void *context)
{
    enum { CLEANUP_PHASE = 2, CONTINUE_UNWIND = 8 };
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    struct thread *thread = target_self, *level;
    (void)version, (void)language, (void)exception, (void)context;
#ifdef TTD_ATTACHED
    if ((actions & CLEANUP_PHASE) != 0)
        attached_depth--; /* each hook has raised it */
#endif
    if ((actions & CLEANUP_PHASE) == 0 || !thread || target_on->on == 0)
        return CONTINUE_UNWIND;
    while ((level = levels_innermost(thread)) && levels_is_surely_gone(thread, level, frame))
        levels_leave(level);
    if (level)
        levels_unwound(level);
    return CONTINUE_UNWIND;
}
