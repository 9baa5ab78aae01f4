/* SPDX-License-Identifier: MIT */
#ifndef UNWIND_EXPR_H
#define UNWIND_EXPR_H

/* DWARF expressions, as call frame information uses them. */

#include "unwind_step.h"

#pragma GCC visibility push(hidden)

struct expr_machine {
    const struct step_regs *regs;
    struct unwind_mem *mem;
    struct step_log *log; /* may be NULL */
    bool unknown;         /* a register was wanted that is not known */
};

bool expr_register(struct expr_machine *m, uint64_t reg, uintptr_t *value);
bool expr_read(struct expr_machine *m, uintptr_t addr, uintptr_t *value);

/* Evaluates `code`, whose stack starts with `*first` if there is one. False if it is corrupt, too
   long, unsupported, or wants what cannot be had. */
bool expr_evaluate(struct expr_machine *m, struct cursor code, const uintptr_t *first,
                   uintptr_t *value);

#pragma GCC visibility pop

#endif
