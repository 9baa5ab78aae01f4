/* SPDX-License-Identifier: MIT */
/*
 * Distinguishes calls that serve the call around them from independent ones: holds an acquisition
 * until the call around it returns, then drops or records it.
 */
#include "../../channel_record.h"
#include "levels_parts.h"

_Atomic uintptr_t level_serving_sites[SERVING_SITES];

void level_learn(uintptr_t pc)
{
    if (!level_is_serving(pc))
        atomic_store_explicit(level_serving_site(pc), pc, memory_order_relaxed);
}

void level_count_lost(const struct thread *level)
{
    while (level->outer != NULL)
        level = level->outer;
    atomic_fetch_add_explicit(&level->slot->lost[LOSS_REENTRANT], 1, memory_order_relaxed);
}

bool level_is_ready(struct thread *level)
{
    if (level->slot == NULL && !thread_attach_inner(level))
        return false;
    for (const struct thread *outer = level->outer; outer != NULL; outer = outer->outer)
        if (outer->phase == PHASE_RECORD)
            level->starving = true;
    return true;
}

void level_record(struct thread *level, unsigned operation, const struct unwind_delta *stack,
                  const uint64_t *operands, unsigned count)
{
    const struct unwind_delta no_frames = {0};
    if (operation != TTD_API_REALLOC && operation != TTD_API_REALLOCARRAY) {
        level->steps++;
        thread_append(level, operation, stack, operands, count);
    } else if (thread_append(level, operation, stack, operands, count - 1)) {
        thread_append(level, OP_REALLOC_END, &no_frames, &operands[count - 1], 1);
    }
}

void level_forget_held(struct thread *level)
{
    level->held.block = 0;
    level->held.is_captured = false;
    level->is_special = level->outer != NULL;
}

bool level_take(struct thread *level, uintptr_t frame)
{
    if (level->guard != 0)
        return false;
    level->guard = frame;
    target_phase(level, PHASE_RECORD);
    return true;
}

void level_record_held(struct thread *outer)
{
    struct held *held = &outer->held;
    struct unwind_delta no_frames = {0};
    if (held->block == 0)
        return;
    struct thread *level = outer->inner;
    bool is_taken = level_take(level, (uintptr_t)__builtin_frame_address(0));
    if (held->block == 0) {
        /* A signal handler has recorded it in the meantime. */
    } else if (held->is_captured) {
        level_record(level, held->call.operation, &held->stack, held->call.operands,
                     held->call.count);
    } else if (level_is_ready(level)) {
        unwinder_reset(level->unwinder);
        level_record(level, held->call.operation, &no_frames, held->call.operands,
                     held->call.count);
    } else {
        level_count_lost(level);
    }
    if (is_taken)
        level->guard = 0;
    level_forget_held(outer);
}

/* Ends what the level holds when the call at the level returns `block`, or 0 for none: drops it if
 * it is that block, and records it if not. */
static void settle(struct thread *level, uint64_t block)
{
    if (level->held.block == 0)
        return;
    if (level->held.block == block) {
        level_learn(level->held.site);
        if (level->held.is_captured)
            unwinder_reset(level->inner->unwinder);
        level_forget_held(level);
    } else {
        level_record_held(level);
    }
}

/* Holds an acquisition until it is known whether the call around it returns its block. */
static void keep_held(struct thread *level, unsigned operation, const struct unwind_regs *caller,
                      const uint64_t *operands, unsigned count)
{
    struct thread *outer = level->outer;
    struct held *held = &outer->held;
    if (held->block != 0)
        level_record_held(outer);
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
    /* The allocator hands the block out again: its release by the call around this one is over, and
       a second release within that call is one of its own. */
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
    if (!level_is_ready(level)) {
        level_count_lost(level);
        return;
    }
    thread_capture(level, caller, &stack);
    level_record(level, operation, &stack, operands, count);
}

/* Whether the release at this level serves the release or reallocation around it. */
static bool serves_outer(struct thread *level, uint64_t base, uintptr_t site)
{
    struct thread *outer = level->outer;
    if (base == 0 || outer == NULL || outer->phase != PHASE_CALL || level->is_apart)
        return false;
    if (outer->released != base)
        return false;
    outer->released = 0;
    if (!level->serves)
        level_learn(site);
    return true;
}

bool level_begins(struct thread *level, unsigned operation, const struct unwind_regs *caller,
                  const uint64_t *operands, unsigned count)
{
    level->is_silent = serves_outer(level, operands[0], caller->pc);
    if (level->is_silent)
        return false;
    if (!level_is_ready(level)) {
        level_count_lost(level);
        level->is_silent = true;
        return false;
    }
    /* Its stack is that of this level's last capture, which ends here. */
    if (level->outer != NULL && level->outer->held.is_captured)
        level_record_held(level->outer);
    return thread_record(level, operation, caller, operands, count);
}

void level_ends(struct thread *level, uint64_t block)
{
    settle(level, block);
}
