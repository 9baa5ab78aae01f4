/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_EXPR_H
#define RECORDER_DWARF_EXPR_H

/* The stack of a DWARF expression, and the operations that need nothing else. */

#include <stdbool.h>
#include <stdint.h>

#include "dwarf/cfi.h"
#include "dwarf/dwarf.h"
#include "dwarf/step.h"

#define EXPR_STACK_MAX 24

struct expr_stack {
    struct cursor *code; /* of the expression; failed by an overflow, underflow or division by 0 */
    unsigned depth;
    uintptr_t values[EXPR_STACK_MAX];
};

/** Fails the expression if there is no room. */
static inline void expr_push(struct expr_stack *stack, uintptr_t value)
{
    if (stack->depth == EXPR_STACK_MAX) {
        cursor_fail(stack->code);
        return;
    }
    stack->values[stack->depth++] = value;
}

/** Returns 0, and fails the expression, if the stack is empty. */
static inline uintptr_t expr_pop(struct expr_stack *stack)
{
    if (stack->depth == 0) {
        cursor_fail(stack->code);
        return 0;
    }
    return stack->values[--stack->depth];
}

#pragma GCC visibility push(hidden)

/** Runs an operation on constants and the stack itself; reads its operands from stack->code. False
   if `op` is none of them. */
bool expr_stack_run(struct expr_stack *stack, unsigned op);

#pragma GCC visibility pop

/* DWARF expressions, as call frame information uses them. */

/** The state of the evaluation of an expression. */
struct expr_machine {
    const struct step_regs *regs;
    struct unwind_mem *mem;
    struct step_log *log; /* may be NULL */
    bool lacks_register;  /* set where a register was needed that is not known */
    struct cursor code;   /* of the expression that is evaluated */
    struct expr_stack stack;
};

#pragma GCC visibility push(hidden)

/** Returns the value of a register, and logs its use. False, and machine->lacks_register set, if it
   is not known. */
bool expr_register(struct expr_machine *machine, uint64_t reg, uintptr_t *value);

/** Reads a word, and logs it. False if it cannot be read. */
bool expr_read(struct expr_machine *machine, uintptr_t address, uintptr_t *value);

/** Evaluates `machine->code`, whose stack starts with `*first` unless that is NULL. False if it is
   corrupt, too long or unsupported, or needs a register or memory that is not there. */
bool expr_evaluate(struct expr_machine *machine, const uintptr_t *first, uintptr_t *value);

#pragma GCC visibility pop

/*
 * The memory of the general path: part of each unwinder. It would take more of the stack than a
 * thread with the least stack, or a handler on a signal stack, may have left.
 */

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
