/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_DWARF_EXPR_STACK_H
#define RECORDER_DWARF_EXPR_STACK_H

/* The stack of a DWARF expression, and the operations that need nothing else. */

#include <stdbool.h>
#include <stdint.h>

#include "dwarf/cursor.h"
#include "dwarf/dwarf.h"

#define EXPR_STACK_MAX 24

struct expr_stack {
    struct cursor *code; /* of the expression; failed by an overflow, underflow or division by 0 */
    unsigned depth;
    uintptr_t values[EXPR_STACK_MAX];
};

/* Fails the expression if there is no room. */
static inline void expr_push(struct expr_stack *stack, uintptr_t value)
{
    if (stack->depth == EXPR_STACK_MAX) {
        cursor_fail(stack->code);
        return;
    }
    stack->values[stack->depth++] = value;
}

/* Returns 0, and fails the expression, if the stack is empty. */
static inline uintptr_t expr_pop(struct expr_stack *stack)
{
    if (stack->depth == 0) {
        cursor_fail(stack->code);
        return 0;
    }
    return stack->values[--stack->depth];
}

#pragma GCC visibility push(hidden)

/* Runs an operation on constants and the stack itself; reads its operands from stack->code. False
   if `op` is none of them. */
bool expr_stack_run(struct expr_stack *stack, unsigned op);

#pragma GCC visibility pop

#endif
