/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_PRELOAD_UNWIND_LIST_H
#define RECORDER_PRELOAD_UNWIND_LIST_H

/* Lists a stack with all that is known of its frames, slowly. An unwinder's memory of the last
 * capture stays as it is. */

#include "preload/unwind/unwind.h"
#include "dwarf/step.h"

#pragma GCC visibility push(hidden)

/*
 * Finds the innermost frame of the calling thread whose code is not skipped. `is_skipped` is asked
 * about addresses of code. Sets `regs` to the registers of that frame, as its callee returns them.
 * Returns false, with the registers of the outermost frame that was found, if all are skipped.
 */
bool unwinder_find(struct unwinder *unwinder, bool (*is_skipped)(uintptr_t address),
                   struct step_regs *regs);

/* Room for `max` frames: where each goes on, and its CFA, 0 if that is not known. */
struct stack_list {
    uint32_t max;
    uint32_t outermost; /* below max */
    uint64_t *pcs, *cfas;
    /* How many frames there was no room for, and the entry that stands for them, whose CFA is that
       of the last one; 0 if there was room. */
    uint64_t left_out;
    uint32_t gap;
};

/*
 * Lists the frames from the one with `regs` on, innermost first. If there are more than there is
 * room for, the last `outermost` entries are the outermost frames, and the entry before them is the
 * gap. Returns the number of entries.
 */
uint32_t unwinder_list(struct unwinder *unwinder, const struct step_regs *regs,
                       struct stack_list *list);

#pragma GCC visibility pop

#endif
