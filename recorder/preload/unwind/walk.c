/* SPDX-License-Identifier: MIT */
/* Walks a stack from the innermost frame until a frame of the last capture is met. */
#include "preload/unwind/walk_fast.h"

/* Frames of this library between walk_registers() and the hook's caller, at most. */
#define OWN_FRAMES 8

static bool meets_candidate(const struct unwinder *unwinder, struct walk *walk)
{
    struct walk_place *place = &walk->place;
    uint32_t *candidates = &place->candidates;
    while (candidate_sp(unwinder->frames, *candidates) < place->state.sp)
        --*candidates; /* the walk has passed it */
    return *candidates > 0 && is_state_of(&unwinder->frames[*candidates - 1],
                                          unwinder->pcs[*candidates - 1], &place->state);
}

/* Not inlined: the stack may be small, and its part of it is free again when a step needs more. */
static __attribute__((noinline)) bool meets_fast(struct unwinder *unwinder, struct walk *walk)
{
    return take_fast_steps(unwinder, walk->mem.own_low, walk->mem.own_high, &walk->place);
}

enum walk_end walk_stack(struct unwinder *unwinder, struct walk *walk)
{
    for (;;) {
        struct walk_place *place = &walk->place;
        if (walk->others == NULL ? meets_fast(unwinder, walk) : meets_candidate(unwinder, walk))
            return WALK_MET;
        if (place->state.pc == 0)
            return WALK_ENDED;
        if (place->new_count == unwinder->capacity) {
            if (!unwinder_grow(unwinder))
                return WALK_DEEP;
            continue;
        }
        struct new_frame *frame = &unwinder->new_frames[place->new_count++];
        unwind_rule rule = rules_find(place->state.pc, &unwinder->scratch.lookup);
        *frame = (struct new_frame){.state = place->state, .rule = rule};
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
