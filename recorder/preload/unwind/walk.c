/* SPDX-License-Identifier: MIT */
/* Walks a stack from the innermost frame until a frame of the last capture is met. */
#include "state.h"

/* Frames of this library between walk_registers() and the hook's caller, at most. */
#define OWN_FRAMES 8

#define always_inline inline __attribute__((always_inline))

/* Drops the candidates that lie inside of `sp`: the walk has passed them. */
static always_inline uint32_t drop_passed(const struct known_frame *frames, uint32_t candidates,
                                          uintptr_t sp)
{
    while (candidates > 0 && frames[candidates - 1].sp < sp)
        candidates--;
    return candidates;
}

/* Whether a frame of the last capture had this very state. */
static always_inline bool is_state_of(const struct known_frame *frame, uintptr_t known_pc,
                                      const struct unwind_regs *state)
{
    return frame->sp == state->sp && known_pc == state->pc &&
           (!frame->is_bp_live || frame->bp == state->bp);
}

/*
 * Takes the steps that nearly all are: by rsp or rbp, on the thread's own stack, without other
 * registers. Returns true if a candidate is met; else leaves the state at the first frame that must
 * be stepped from in another way. The state is in local variables, and so in registers.
 */
static always_inline bool take_fast_steps(struct unwinder *unwinder, struct walk *walk)
{
    const uintptr_t low = walk->mem.own_low;
    const uintptr_t span = walk->mem.own_high - 8 - low;
    const struct known_frame *frames = unwinder->frames;
    struct new_frame *frame = unwinder->new_frames + walk->new_count;
    const struct new_frame *end = unwinder->new_frames + unwinder->capacity;
    struct unwind_regs state = walk->state;
    uint32_t candidates = walk->candidates;
    bool is_met = false;
    while (frame < end && state.pc != 0) {
        candidates = drop_passed(frames, candidates, state.sp);
        is_met = candidates > 0 &&
                 is_state_of(&frames[candidates - 1], unwinder->pcs[candidates - 1], &state);
        if (is_met)
            break;
        unwind_rule rule = rules_find(state.pc, &unwinder->scratch.lookup);
        frame->state = state;
        frame->rule = rule;
        frame->kind = NEW_FRAME_FAST;
        unsigned kind = rule_kind(rule);
        uintptr_t cfa = (kind == RULE_SP ? state.sp : state.bp) + rule_offset(rule);
        uintptr_t saved = rule_bp(rule);
        /* Unsigned differences: an address below `low` is beyond `span` as well. */
        if (__builtin_expect(kind > RULE_BP || cfa <= state.sp || cfa % 8 != 0 ||
                                 cfa - 8 - low > span || cfa - saved - low > span + 8,
                             0))
            break;
        state.pc = *(const uintptr_t *)(cfa - 8);
        state.bp = saved != 0 ? *(const uintptr_t *)(cfa - saved) : state.bp;
        state.sp = cfa;
        frame++;
    }
    walk->state = state;
    walk->candidates = candidates;
    walk->new_count = (uint32_t)(frame - unwinder->new_frames);
    return is_met;
}

static bool meets_candidate(const struct unwinder *unwinder, struct walk *walk)
{
    walk->candidates = drop_passed(unwinder->frames, walk->candidates, walk->state.sp);
    return walk->candidates > 0 && is_state_of(&unwinder->frames[walk->candidates - 1],
                                               unwinder->pcs[walk->candidates - 1], &walk->state);
}

enum walk_end walk_stack(struct unwinder *unwinder, struct walk *walk)
{
    for (;;) {
        if (walk->others == NULL ? take_fast_steps(unwinder, walk)
                                 : meets_candidate(unwinder, walk))
            return WALK_MET;
        if (walk->state.pc == 0)
            return WALK_ENDED;
        if (walk->new_count == unwinder->capacity) {
            if (!unwinder_grow(unwinder))
                return WALK_DEEP;
            continue;
        }
        struct new_frame *frame = &unwinder->new_frames[walk->new_count++];
        unwind_rule rule = rules_find(walk->state.pc, &unwinder->scratch.lookup);
        *frame = (struct new_frame){.state = walk->state, .rule = rule};
        enum walk_end end = walk_step(unwinder, walk, frame);
        if (end != WALK_GOES_ON)
            return end;
    }
}

__attribute__((noinline)) void walk_registers(const struct unwind_regs *start,
                                              const struct unwind_mem *mem,
                                              struct unwind_scratch *scratch)
{
    struct step_regs *regs = &scratch->own;
    struct unwind_mem own = *mem;
    step_regs_here(regs);
    scratch->others.known = 0;
    if (own.own_low <= start->sp && start->sp < own.own_high)
        own.own_low = regs->reg[CFI_RSP] < own.own_low ? regs->reg[CFI_RSP] : own.own_low;
    for (int i = 0; i < OWN_FRAMES && regs->reg[CFI_RSP] < start->sp; i++)
        if (unwind_step(regs, &own, scratch) != STEP_DONE)
            return;
    if (regs->reg[CFI_RSP] == start->sp && regs->reg[CFI_RA] == start->pc)
        scratch->others = *regs;
}
