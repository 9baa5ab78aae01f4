/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_EXPR_H
#define RECORDER_DWARF_EXPR_H

/* DWARF expressions, as call frame information uses them. */

#include "dwarf/expr_stack.h"
#include "dwarf/step.h"

/* The state of the evaluation of an expression. */
struct expr_machine {
    const struct step_regs *regs;
    struct unwind_mem *mem;
    struct step_log *log; /* may be NULL */
    bool lacks_register;  /* set where a register was needed that is not known */
    struct cursor code;   /* of the expression that is evaluated */
    struct expr_stack stack;
};

#pragma GCC visibility push(hidden)

/* Returns the value of a register, and logs its use. False, and machine->lacks_register set, if it
   is not known. */
bool expr_register(struct expr_machine *machine, uint64_t reg, uintptr_t *value);

/* Reads a word, and logs it. False if it cannot be read. */
bool expr_read(struct expr_machine *machine, uintptr_t address, uintptr_t *value);

/* Evaluates `machine->code`, whose stack starts with `*first` unless that is NULL. False if it is
   corrupt, too long or unsupported, or needs a register or memory that is not there. */
bool expr_evaluate(struct expr_machine *machine, const uintptr_t *first, uintptr_t *value);

#pragma GCC visibility pop

#endif
