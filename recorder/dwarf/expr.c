/* SPDX-License-Identifier: MIT */
#include "dwarf/expr.h"

/* Operations that one expression may run: it may branch backwards. */
#define STEPS_MAX 256

bool expr_register(struct expr_machine *machine, uint64_t reg, uintptr_t *value)
{
    if (reg >= CFI_REGS || (machine->regs->known >> reg & 1) == 0) {
        machine->lacks_register = true;
        return false;
    }
    if (machine->log != NULL)
        machine->log->used |= 1u << reg;
    /* The return address is asked for only where a frame was interrupted: reg[] has one more. */
    *value = machine->regs->reg[reg] - (reg == CFI_RA);
    return true;
}

bool expr_read(struct expr_machine *machine, uintptr_t address, uintptr_t *value)
{
    if (!unwind_read(machine->mem, address, value))
        return false;
    if (machine->log != NULL && machine->log->count++ < UNWIND_STEP_READS)
        machine->log->reads[machine->log->count - 1] = (struct step_read){address, *value};
    return true;
}

static void push_register(struct expr_machine *machine, uint64_t reg, int64_t offset)
{
    uintptr_t value;
    if (!expr_register(machine, reg, &value)) {
        cursor_fail(machine->stack.code);
        return;
    }
    expr_push(&machine->stack, value + (uintptr_t)offset);
}

static void dereference(struct expr_machine *machine)
{
    struct expr_stack *stack = &machine->stack;
    uintptr_t value;
    if (!expr_read(machine, expr_pop(stack), &value)) {
        cursor_fail(stack->code);
        return;
    }
    expr_push(stack, value);
}

/* Reads the distance of a branch, and goes there if `is_taken`: nowhere outside of the expression.
 */
static void branch(struct expr_stack *stack, const uint8_t *start, bool is_taken)
{
    struct cursor *code = stack->code;
    int64_t delta = cursor_int(code, 2);
    if (!is_taken)
        return;
    if (delta < start - code->next || delta > code->end - code->next) {
        cursor_fail(code);
        return;
    }
    code->next += delta;
}

static void expr_run_one(struct expr_machine *machine, const uint8_t *start)
{
    struct expr_stack *stack = &machine->stack;
    struct cursor *code = stack->code;
    unsigned op = cursor_u8(code);
    if (op >= OP_BREG0 && op <= OP_BREG31) {
        push_register(machine, op - OP_BREG0, cursor_sleb(code));
    } else if (op == OP_BREGX) {
        uint64_t reg = cursor_uleb(code);
        push_register(machine, reg, cursor_sleb(code));
    } else if (op == OP_DEREF) {
        dereference(machine);
    } else if (op == OP_SKIP) {
        branch(stack, start, true);
    } else if (op == OP_BRA) {
        branch(stack, start, expr_pop(stack) != 0);
    } else if (!expr_stack_run(stack, op)) {
        cursor_fail(code);
    }
}

bool expr_evaluate(struct expr_machine *machine, const uintptr_t *first, uintptr_t *value)
{
    struct expr_stack *stack = &machine->stack;
    struct cursor *code = &machine->code;
    const uint8_t *start = code->next;
    unsigned steps = 0;
    stack->code = code;
    stack->depth = 0;
    if (first != NULL)
        expr_push(stack, *first);
    while (code->next != code->end) {
        if (steps++ == STEPS_MAX)
            return false;
        expr_run_one(machine, start);
    }
    uintptr_t top = expr_pop(stack);
    if (code->is_bad)
        return false;
    *value = top;
    return true;
}
