/* SPDX-License-Identifier: MIT */
/** The steps of a walk that nearly all are. */
#ifndef RECORDER_PRELOAD_UNWIND_WALK_FAST_H
#define RECORDER_PRELOAD_UNWIND_WALK_FAST_H

#include "preload/unwind/unwind_state.h"

#define always_inline inline __attribute__((always_inline))

/** Returns the stack pointer of the innermost candidate; if there is none, one that no frame has.
 */
static always_inline uintptr_t walk_candidate_sp(const struct known_frame *frames,
                                                 uint32_t candidates)
{
    return candidates > 0 ? frames[candidates - 1].sp : UINTPTR_MAX;
}

/** Whether a frame of the last capture had this very state. */
static always_inline bool walk_is_state_of(const struct known_frame *frame, uintptr_t known_pc,
                                           const struct unwind_regs *state)
{
    return frame->sp == state->sp && known_pc == state->pc &&
           (!frame->is_bp_live || frame->bp == state->bp);
}

/** Puts a rule into the cache. A signal handler may jump out of here, and must leave no address
 * with the rule of another. */
static always_inline void walk_keep_rule(struct cached_rule *cached, uintptr_t pc, unwind_rule rule)
{
    cached->pc = 0;
    atomic_signal_fence(memory_order_seq_cst);
    cached->rule = rule;
    atomic_signal_fence(memory_order_seq_cst);
    cached->pc = pc;
}

/** Returns the rule for the return address `pc`. */
static always_inline unwind_rule walk_find_rule(struct unwinder *unwinder, uintptr_t pc)
{
    if (!unwinder->cache)
        return rules_find(pc, &unwinder->scratch.lookup);
    struct cached_rule *cached =
        &unwinder->cache[pc * 0x9e3779b97f4a7c15u >> (64 - RULE_CACHE_BITS)];
    if (cached->pc == pc)
        return cached->rule;
    unwind_rule rule = rules_find(pc, &unwinder->scratch.lookup);
    if (rule_kind(rule) <= RULE_BP)
        walk_keep_rule(cached, pc, rule);
    return rule;
}

/**
 * Takes the steps that nearly all are: by rsp or rbp, on the thread's own stack [own_low,
 * own_high), without other registers. Returns true if a candidate is met; else leaves the place at
 * the first frame that must be stepped from in another way. The state is in local variables, and so
 * in registers.
 */
static always_inline bool take_fast_steps(struct unwinder *unwinder, uintptr_t own_low,
                                          uintptr_t own_high, struct walk_place *place)
{
    const uintptr_t span = own_high - 8 - own_low;
    const struct known_frame *frames = unwinder->frames;
    struct new_frame *frame = unwinder->new_frames + place->new_count;
    const struct new_frame *end = unwinder->new_frames + unwinder->capacity;
    struct unwind_regs state = place->state;
    uint32_t candidates = place->candidates;
    uintptr_t next_sp = walk_candidate_sp(frames, candidates);
    bool is_met = false;
    while (frame < end && state.pc != 0) {
        while (next_sp < state.sp)
            next_sp = walk_candidate_sp(frames, --candidates);
        is_met = next_sp == state.sp &&
                 walk_is_state_of(&frames[candidates - 1], unwinder->pcs[candidates - 1], &state);
        if (is_met)
            break;
        unwind_rule rule = walk_find_rule(unwinder, state.pc);
        frame->state = state;
        frame->rule = rule;
        frame->kind = NEW_FRAME_FAST;
        unsigned kind = rule_kind(rule);
        uintptr_t cfa = (kind == RULE_SP ? state.sp : state.bp) + rule_offset(rule);
        uintptr_t saved = rule_bp(rule);
        /* Unsigned differences: an address below `own_low` is beyond `span` as well. */
        if (__builtin_expect(kind > RULE_BP || cfa <= state.sp || cfa % 8 != 0 ||
                                 cfa - 8 - own_low > span || cfa - saved - own_low > span + 8,
                             0))
            break;
        state.pc = *(const uintptr_t *)(cfa - 8);
        state.bp = saved != 0 ? *(const uintptr_t *)(cfa - saved) : state.bp;
        state.sp = cfa;
        frame++;
    }
    place->state = state;
    place->candidates = candidates;
    place->new_count = (uint32_t)(frame - unwinder->new_frames);
    return is_met;
}

#undef always_inline

#endif
