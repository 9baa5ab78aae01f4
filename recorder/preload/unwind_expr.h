/* SPDX-License-Identifier: MIT */
#ifndef TTD_PRELOAD_UNWIND_EXPR_H
#define TTD_PRELOAD_UNWIND_EXPR_H

/* DWARF expressions, as call frame information uses them. */

#include "unwind_step.h"

#pragma GCC visibility push(hidden)

#define EXPR_STACK_MAX 24

struct expr_stack {
    struct cursor *code; /* failed by an overflow */
    unsigned depth;
    uintptr_t values[EXPR_STACK_MAX];
};

struct expr_machine {
    const struct step_regs *regs;
    struct unwind_mem *mem;
    struct step_log *log; /* may be NULL */
    bool unknown;         /* a register was wanted that is not known */
    struct expr_stack stack;
};

bool expr_register(struct expr_machine *machine, uint64_t reg, uintptr_t *value);
bool expr_read(struct expr_machine *machine, uintptr_t address, uintptr_t *value);

/* Evaluates `code`, whose stack starts with `*first` if there is one. False if it is corrupt, too
   long, unsupported, or wants what cannot be had. */
bool expr_evaluate(struct expr_machine *machine, struct cursor code, const uintptr_t *first,
                   uintptr_t *value);

#pragma GCC visibility pop

#endif
