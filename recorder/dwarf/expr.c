/* SPDX-License-Identifier: MIT */
#include "dwarf/expr.h"

/* Pushes a copy of the value that is `depth` values below the top. */
static void expr_pick(struct expr_stack *stack, unsigned depth)
{
    if (depth >= stack->depth) {
        cursor_fail(stack->code);
        return;
    }
    expr_push(stack, stack->values[stack->depth - 1 - depth]);
}

static void expr_swap(struct expr_stack *stack)
{
    uintptr_t top = expr_pop(stack);
    uintptr_t second = expr_pop(stack);
    expr_push(stack, top);
    expr_push(stack, second);
}

/* The top becomes the third, the others move up. */
static void expr_rotate(struct expr_stack *stack)
{
    uintptr_t top = expr_pop(stack);
    uintptr_t second = expr_pop(stack);
    uintptr_t third = expr_pop(stack);
    expr_push(stack, top);
    expr_push(stack, third);
    expr_push(stack, second);
}

static void expr_unary(struct expr_stack *stack, unsigned op)
{
    uintptr_t value = expr_pop(stack);
    switch (op) {
    case OP_ABS:
        expr_push(stack, (intptr_t)value < 0 ? -value : value);
        break;
    case OP_NEG:
        expr_push(stack, -value);
        break;
    default:
        expr_push(stack, ~value);
    }
}

static uintptr_t expr_shifted(uintptr_t value, uintptr_t bits, unsigned op)
{
    if (op == OP_SHRA)
        return (uintptr_t)((intptr_t)value >> (bits < 63 ? bits : 63));
    if (bits > 63)
        return 0;
    return op == OP_SHL ? value << bits : value >> bits;
}

static uintptr_t expr_compared(intptr_t left, intptr_t right, unsigned op)
{
    switch (op) {
    case OP_EQ:
        return left == right;
    case OP_GE:
        return left >= right;
    case OP_GT:
        return left > right;
    case OP_LE:
        return left <= right;
    case OP_LT:
        return left < right;
    default:
        return left != right;
    }
}

/* Division is signed, the remainder unsigned, as DWARF has it. */
static uintptr_t expr_divided(struct expr_stack *stack, uintptr_t left, uintptr_t right,
                              unsigned op)
{
    if (right == 0 || (op == OP_DIV && (intptr_t)left == INT64_MIN && (intptr_t)right == -1)) {
        cursor_fail(stack->code);
        return 0;
    }
    return op == OP_DIV ? (uintptr_t)((intptr_t)left / (intptr_t)right) : left % right;
}

static void expr_binary(struct expr_stack *stack, unsigned op)
{
    uintptr_t right = expr_pop(stack);
    uintptr_t left = expr_pop(stack);
    switch (op) {
    case OP_AND:
        expr_push(stack, left & right);
        break;
    case OP_DIV:
    case OP_MOD:
        expr_push(stack, expr_divided(stack, left, right, op));
        break;
    case OP_MINUS:
        expr_push(stack, left - right);
        break;
    case OP_MUL:
        expr_push(stack, left * right);
        break;
    case OP_OR:
        expr_push(stack, left | right);
        break;
    case OP_PLUS:
        expr_push(stack, left + right);
        break;
    case OP_SHL:
    case OP_SHR:
    case OP_SHRA:
        expr_push(stack, expr_shifted(left, right, op));
        break;
    case OP_XOR:
        expr_push(stack, left ^ right);
        break;
    default:
        expr_push(stack, expr_compared((intptr_t)left, (intptr_t)right, op));
    }
}

/* Runs an operation that pushes a constant. */
static bool expr_run_constant(struct expr_stack *stack, unsigned op)
{
    struct cursor *code = stack->code;
    if (op == OP_ADDR) {
        expr_push(stack, cursor_uint(code, 8));
    } else if (op == OP_CONSTU) {
        expr_push(stack, cursor_uleb(code));
    } else if (op == OP_CONSTS) {
        expr_push(stack, (uintptr_t)cursor_sleb(code));
    } else if (op >= OP_LIT0 && op <= OP_LIT31) {
        expr_push(stack, op - OP_LIT0);
    } else if (op >= OP_CONST1U && op <= OP_CONST8S) { /* 1u 1s 2u 2s 4u 4s 8u 8s */
        size_t size = (size_t)1 << ((op - OP_CONST1U) / 2);
        bool is_signed = (op - OP_CONST1U) % 2 != 0;
        expr_push(stack, is_signed ? (uintptr_t)cursor_int(code, size) : cursor_uint(code, size));
    } else {
        return false;
    }
    return true;
}

/* Runs an operation that copies, drops or moves values. */
static bool expr_run_arrangement(struct expr_stack *stack, unsigned op)
{
    switch (op) {
    case OP_DUP:
        expr_pick(stack, 0);
        return true;
    case OP_DROP:
        expr_pop(stack);
        return true;
    case OP_OVER:
        expr_pick(stack, 1);
        return true;
    case OP_PICK:
        expr_pick(stack, cursor_u8(stack->code));
        return true;
    case OP_SWAP:
        expr_swap(stack);
        return true;
    case OP_ROT:
        expr_rotate(stack);
        return true;
    case OP_NOP:
        return true;
    default:
        return false;
    }
}

static bool expr_run_arithmetic(struct expr_stack *stack, unsigned op)
{
    if (op == OP_PLUS_UCONST) {
        uint64_t addend = cursor_uleb(stack->code);
        expr_push(stack, expr_pop(stack) + addend);
    } else if (op == OP_ABS || op == OP_NEG || op == OP_NOT) {
        expr_unary(stack, op);
    } else if (op >= OP_AND && op <= OP_NE && op != OP_BRA) {
        expr_binary(stack, op);
    } else {
        return false;
    }
    return true;
}

bool expr_stack_run(struct expr_stack *stack, unsigned op)
{
    return expr_run_constant(stack, op) || expr_run_arrangement(stack, op) ||
           expr_run_arithmetic(stack, op);
}

/* Operations that one expression may run: it may branch backwards. */
#define STEPS_MAX 256

bool expr_register(struct expr_machine *machine, uint64_t reg, uintptr_t *value)
{
    if (reg >= CFI_REGS || (machine->regs->known >> reg & 1) == 0) {
        machine->lacks_register = true;
        return false;
    }
    if (machine->log)
        machine->log->used |= 1u << reg;
    /* The return address is asked for only where a frame was interrupted: reg[] has one more. */
    *value = machine->regs->reg[reg] - (reg == CFI_RA);
    return true;
}

bool expr_read(struct expr_machine *machine, uintptr_t address, uintptr_t *value)
{
    if (!unwind_read(machine->mem, address, value))
        return false;
    if (machine->log && machine->log->count++ < UNWIND_STEP_READS)
        machine->log->reads[machine->log->count - 1] = (struct step_read){address, *value};
    return true;
}

static void expr_push_register(struct expr_machine *machine, uint64_t reg, int64_t offset)
{
    uintptr_t value;
    if (!expr_register(machine, reg, &value)) {
        cursor_fail(machine->stack.code);
        return;
    }
    expr_push(&machine->stack, value + (uintptr_t)offset);
}

static void expr_dereference(struct expr_machine *machine)
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
static void expr_branch(struct expr_stack *stack, const uint8_t *start, bool is_taken)
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
        expr_push_register(machine, op - OP_BREG0, cursor_sleb(code));
    } else if (op == OP_BREGX) {
        uint64_t reg = cursor_uleb(code);
        expr_push_register(machine, reg, cursor_sleb(code));
    } else if (op == OP_DEREF) {
        expr_dereference(machine);
    } else if (op == OP_SKIP) {
        expr_branch(stack, start, true);
    } else if (op == OP_BRA) {
        expr_branch(stack, start, expr_pop(stack) != 0);
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
    if (first)
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
