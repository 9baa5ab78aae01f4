/* SPDX-License-Identifier: MIT */
#ifndef TTD_PRELOAD_UNWIND_LIST_H
#define TTD_PRELOAD_UNWIND_LIST_H

/* Lists a stack with all that is known of its frames, slowly. What an unwinder remembers of the
   last capture stays as it is. */

#include "unwind.h"
#include "../../dwarf/step.h"

#pragma GCC visibility push(hidden)

/*
 * Finds the innermost frame of the calling thread whose code is not skipped. `is_skipped` is asked
 * about addresses of code. Sets `regs` to the registers of that frame, as its callee returns them.
 * Returns false, with the registers of the outermost frame that was found, if all are skipped.
 */
bool unwinder_find(struct unwinder *unwinder, bool (*is_skipped)(uintptr_t address),
                   struct step_regs *regs);

/*
 * Lists the frames from the one with `regs` on, innermost first: where each goes on, and its CFA,
 * 0 if that is not known. Returns how many they are, at most `max`.
 */
uint32_t unwinder_list(struct unwinder *unwinder, const struct step_regs *regs, uint32_t max,
                       uint64_t *pcs, uint64_t *cfas);

#pragma GCC visibility pop

#endif
