/* SPDX-License-Identifier: MIT */
/*
 * Distinguishes calls that serve the call around them from independent ones: holds an acquisition
 * until the call around it returns, then drops or records it.
 */
#include "channel_record.h"
#include "preload/threads/levels.h"
#include "preload/threads/chosen.h"

_Atomic uintptr_t level_serving_sites[SERVING_SITES];

void level_learn(uintptr_t pc)
{
    if (!level_is_serving(pc))
        atomic_store_explicit(level_serving_site(pc), pc, memory_order_relaxed);
}

void level_count_lost(const struct thread *level)
{
    while (level->outer)
        level = level->outer;
    atomic_fetch_add_explicit(&level->slot->lost[LOSS_REENTRANT], 1, memory_order_relaxed);
}

bool level_is_ready(struct thread *level)
{
    if (!level->slot && !thread_attach_inner(level))
        return false;
    for (const struct thread *outer = level->outer; outer; outer = outer->outer)
        if (outer->phase == PHASE_RECORD)
            level->starving = true;
    return true;
}

void level_record(struct thread *level, unsigned operation, const struct unwind_delta *stack,
                  const uint64_t *operands, unsigned count)
{
    const struct unwind_delta no_frames = {0};
    if ((target_channel->flags & CHANNEL_CHOOSES) != 0 &&
        !chosen_acquires(level, operation, operands, count)) {
        unwinder_reset(level->unwinder); /* no record follows the capture */
        return;
    }
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
    level->is_special = level->outer || level->has_early;
}

/* Notes that the acquisition held at `outer` has been recorded, while the call there goes on. A
 * block that a signal handler acquires does not serve the call, and anybody may release it
 * meanwhile. */
static void held_note_early(struct thread *outer)
{
    struct early *early = outer->early;
    if (outer->held.block == 0 ||
        (outer->held.is_captured &&
         unwinder_is_in_handler(outer->inner->unwinder, outer->guard + 2 * sizeof(uintptr_t))))
        return;
    for (unsigned i = 0; i < EARLY_ACQUISITIONS; i++) {
        if (outer->early[i].block == 0) {
            early = &outer->early[i];
            break;
        }
    }
    early->operation = outer->held.call.operation;
    early->block = outer->held.block;
    outer->has_early = true;
}

void level_forget_early(struct thread *level)
{
    if (!level->has_early)
        return;
    for (unsigned i = 0; i < EARLY_ACQUISITIONS; i++)
        level->early[i].block = 0;
    level->has_early = false;
    level->is_special = level->outer != NULL;
}

/* Whether free() may release a block that the operation has acquired. */
static bool held_is_for_free(unsigned operation)
{
    return call_facts_of(operation).family == TTD_FAMILY_C;
}

/* Records, by the level within `outer`, the release of the block that the call there acquires
 * itself; counts it as lost if it would seem to be a mismatched one. */
static void held_release_early(struct thread *outer, const struct early *early)
{
    const struct unwind_delta no_frames = {0};
    struct thread *level = outer->inner;
    if ((target_channel->flags & CHANNEL_CHOOSES) != 0 && !chosen_release(early->block))
        return;
    bool is_taken = level_take(level, (uintptr_t)__builtin_frame_address(0));
    if (held_is_for_free(early->operation) && level_is_ready(level)) {
        unwinder_reset(level->unwinder);
        thread_append(level, TTD_API_FREE, &no_frames, &early->block, 1);
        level->steps++;
    } else {
        level_count_lost(level);
    }
    if (is_taken)
        level->guard = 0;
}

/* Ends early records within the level's call; that acquires `block`, or 0 for none. */
static void held_settle_early(struct thread *level, uint64_t block)
{
    if (!level->has_early)
        return;
    for (unsigned i = 0; block != 0 && i < EARLY_ACQUISITIONS; i++)
        if (level->early[i].block == block)
            held_release_early(level, &level->early[i]);
    level_forget_early(level);
}

/* A block has been released while the calls around the level go on. */
static void held_drop_early(const struct thread *level, uint64_t block)
{
    for (struct thread *outer = level->outer; outer; outer = outer->outer)
        for (unsigned i = 0; outer->phase == PHASE_CALL && i < EARLY_ACQUISITIONS; i++)
            if (outer->early[i].block == block)
                outer->early[i].block = 0;
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
    held_note_early(outer);
    if (is_taken)
        level->guard = 0;
    level_forget_held(outer);
}

/* Ends the level's held acquisitions when the call at the level returns `block`, or 0 for none:
 * drops it if it is that block, and records it if not. */
static void held_settle(struct thread *level, uint64_t block)
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

void level_hold(struct thread *level, unsigned operation, const struct unwind_regs *caller,
                const uint64_t *operands, unsigned count)
{
    struct thread *outer = level->outer;
    struct held *held = &outer->held;
    if (held->block != 0)
        level_record_held(outer);
    held->is_captured = !level->serves;
    if (held->is_captured)
        thread_capture(level, operation, caller, &held->stack);
    for (unsigned i = 0; i < count; i++)
        held->call.operands[i] = operands[i];
    held->call.operation = operation;
    held->call.count = count;
    held->site = caller->pc;
    held->block = operands[count - 1];
    outer->is_special = true;
}

enum level_next level_acquired(struct thread *level, uint64_t block)
{
    held_settle(level, block);
    held_settle_early(level, block);
    /* The allocator hands the block out again: its release by the call around this one is over, and
       a second release within that call is one of its own. */
    for (struct thread *outer = level->outer; outer; outer = outer->outer)
        if (outer->released == block)
            outer->released = 0;
    held_drop_early(level, block);
    if (level->outer && level->outer->phase == PHASE_CALL && !level->is_apart) {
        const struct held *held = &level->outer->held;
        if (block == 0)
            return LEVEL_SKIPS;
        if (held->block == 0 || held->is_captured)
            return LEVEL_HOLDS;
    }
    if (level_is_ready(level))
        return LEVEL_RECORDS;
    level_count_lost(level);
    return LEVEL_SKIPS;
}

/* Whether the release at this level serves the release or reallocation around it. */
static bool held_serves_outer(struct thread *level, uint64_t base, uintptr_t site)
{
    struct thread *outer = level->outer;
    if (base == 0 || !outer || outer->phase != PHASE_CALL || level->is_apart)
        return false;
    if (outer->released != base)
        return false;
    outer->released = 0;
    if (!level->serves)
        level_learn(site);
    return true;
}

bool level_begins(struct thread *level, uint64_t base, uintptr_t site)
{
    level->is_silent = held_serves_outer(level, base, site);
    if (level->is_silent)
        return false;
    if (!level_is_ready(level)) {
        level_count_lost(level);
        level->is_silent = true;
        return false;
    }
    /* Its stack is this level's last capture; that ends here. */
    if (level->outer && level->outer->held.is_captured)
        level_record_held(level->outer);
    held_drop_early(level, base);
    return true;
}

void level_ends(struct thread *level, uint64_t block)
{
    held_settle(level, block);
    held_settle_early(level, block);
}
