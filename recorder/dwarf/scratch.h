/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_SCRATCH_H
#define RECORDER_DWARF_SCRATCH_H

/*
 * The memory of the general path: part of each unwinder. It would take more of the stack than a
 * thread with the least stack, or a handler on a signal stack, may have left.
 */

#include "dwarf/cfi.h"
#include "dwarf/expr.h"
#include "dwarf/step.h"

struct unwind_scratch {
    struct cfi_lookup lookup;
    struct expr_machine machine; /* of unwind_step() */
    struct step_regs caller;     /* likewise */
    struct step_log log;         /* of the last step */
    struct step_regs state;      /* of a step that follows no other registers */
    struct step_regs own;        /* of walk_registers() */
    struct step_regs others;     /* of a walk that follows other registers */
};

#endif
