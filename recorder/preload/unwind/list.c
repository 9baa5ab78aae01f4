/* SPDX-License-Identifier: MIT */
#include "list.h"

#include "state.h"

/* Frames of this library, of the C library and of handlers within it, at most. */
enum { SKIPPED_MAX = 64 };

bool unwinder_find(struct unwinder *unwinder, bool (*is_skipped)(uintptr_t address),
                   struct step_regs *regs)
{
    struct unwind_mem mem = UNWIND_MEM_PROBED;
    cfi_forget(&unwinder->scratch.lookup);
    step_regs_here(regs);
    for (int i = 0; i < SKIPPED_MAX && is_skipped(regs->reg[CFI_RA] - 1); i++)
        if (unwind_step(regs, &mem, &unwinder->scratch) != STEP_DONE)
            return false;
    return !is_skipped(regs->reg[CFI_RA] - 1);
}

uint32_t unwinder_list(struct unwinder *unwinder, const struct step_regs *regs, uint32_t max,
                       uint64_t *pcs, uint64_t *cfas)
{
    struct walk *walk = &unwinder->walk;
    cfi_forget(&unwinder->scratch.lookup);
    unwinder->scratch.others = *regs;
    unwinder->read_count = 0;
    *walk = (struct walk){
        .mem = UNWIND_MEM_PROBED,
        .place.state = {regs->reg[CFI_RA], regs->reg[CFI_RSP], regs->reg[CFI_RBP]},
        .others = &unwinder->scratch.others,
    };
    walk_stack(unwinder, walk);
    uint32_t count = walk->place.new_count < max ? walk->place.new_count : max;
    for (uint32_t i = 0; i < count; i++) {
        bool is_last = i + 1 == walk->place.new_count;
        uintptr_t sp = unwinder->new_frames[i].state.sp;
        uintptr_t next = is_last ? walk->place.state.sp : unwinder->new_frames[i + 1].state.sp;
        pcs[i] = unwinder->new_frames[i].state.pc;
        cfas[i] = next != sp ? next : 0;
    }
    return count;
}
