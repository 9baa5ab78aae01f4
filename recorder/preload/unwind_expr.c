/* SPDX-License-Identifier: MIT */
#include "unwind_expr.h"

#define STEPS_MAX 256 /* an expression may branch backwards */

enum {
    OP_ADDR = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_OVER = 0x14,
    OP_PICK = 0x15,
    OP_SWAP = 0x16,
    OP_ROT = 0x17,
    OP_ABS = 0x19,
    OP_AND = 0x1a,
    OP_DIV = 0x1b,
    OP_MINUS = 0x1c,
    OP_MOD = 0x1d,
    OP_MUL = 0x1e,
    OP_NEG = 0x1f,
    OP_NOT = 0x20,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_SHRA = 0x26,
    OP_XOR = 0x27,
    OP_BRA = 0x28,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_GT = 0x2b,
    OP_LE = 0x2c,
    OP_LT = 0x2d,
    OP_NE = 0x2e,
    OP_SKIP = 0x2f,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_NOP = 0x96,
};

static void push(struct expr_stack *stack, uintptr_t value)
{
    if (stack->depth == EXPR_STACK_MAX) {
        cursor_fail(stack->code);
        return;
    }
    stack->values[stack->depth++] = value;
}

static uintptr_t pop(struct expr_stack *stack)
{
    if (stack->depth == 0) {
        cursor_fail(stack->code);
        return 0;
    }
    return stack->values[--stack->depth];
}

static void pick(struct expr_stack *stack, unsigned n)
{
    if (n >= stack->depth) {
        cursor_fail(stack->code);
        return;
    }
    push(stack, stack->values[stack->depth - 1 - n]);
}

bool expr_register(struct expr_machine *machine, uint64_t reg, uintptr_t *value)
{
    if (reg >= CFI_REGS || (machine->regs->known >> reg & 1) == 0) {
        machine->unknown = true;
        return false;
    }
    if (machine->log != NULL)
        machine->log->used |= 1u << reg;
    /* The address is only ever asked for where a frame was interrupted. */
    *value = machine->regs->reg[reg] - (reg == CFI_RA);
    return true;
}

bool expr_read(struct expr_machine *machine, uintptr_t addr, uintptr_t *value)
{
    if (!unwind_read(machine->mem, addr, value))
        return false;
    if (machine->log != NULL && machine->log->count++ < UNWIND_STEP_READS)
        machine->log->read[machine->log->count - 1] = (struct step_read){addr, *value};
    return true;
}

static void push_register(struct expr_machine *machine, struct expr_stack *stack, uint64_t reg,
                          int64_t offset)
{
    uintptr_t value;
    if (!expr_register(machine, reg, &value)) {
        cursor_fail(stack->code);
        return;
    }
    push(stack, value + (uintptr_t)offset);
}

static void dereference(struct expr_machine *machine, struct expr_stack *stack)
{
    uintptr_t value;
    if (!expr_read(machine, pop(stack), &value)) {
        cursor_fail(stack->code);
        return;
    }
    push(stack, value);
}

static void swap(struct expr_stack *stack)
{
    uintptr_t a = pop(stack);
    uintptr_t b = pop(stack);
    push(stack, a);
    push(stack, b);
}

static void rotate(struct expr_stack *stack)
{
    uintptr_t a = pop(stack);
    uintptr_t b = pop(stack);
    uintptr_t code = pop(stack);
    push(stack, a);
    push(stack, code);
    push(stack, b);
}

static void unary(struct expr_stack *stack, unsigned op)
{
    uintptr_t value = pop(stack);
    switch (op) {
    case OP_ABS:
        push(stack, (intptr_t)value < 0 ? -value : value);
        break;
    case OP_NEG:
        push(stack, -value);
        break;
    default:
        push(stack, ~value);
    }
}

static uintptr_t shifted(uintptr_t a, uintptr_t n, unsigned op)
{
    if (op == OP_SHRA)
        return (uintptr_t)((intptr_t)a >> (n < 63 ? n : 63));
    if (n > 63)
        return 0;
    return op == OP_SHL ? a << n : a >> n;
}

static uintptr_t compared(intptr_t a, intptr_t b, unsigned op)
{
    switch (op) {
    case OP_EQ:
        return a == b;
    case OP_GE:
        return a >= b;
    case OP_GT:
        return a > b;
    case OP_LE:
        return a <= b;
    case OP_LT:
        return a < b;
    default:
        return a != b;
    }
}

static uintptr_t divided(struct expr_stack *stack, uintptr_t a, uintptr_t b, unsigned op)
{
    if (b == 0 || (op == OP_DIV && (intptr_t)a == INT64_MIN && (intptr_t)b == -1)) {
        cursor_fail(stack->code);
        return 0;
    }
    return op == OP_DIV ? (uintptr_t)((intptr_t)a / (intptr_t)b) : a % b;
}

static void binary(struct expr_stack *stack, unsigned op)
{
    uintptr_t b = pop(stack);
    uintptr_t a = pop(stack);
    switch (op) {
    case OP_AND:
        push(stack, a & b);
        break;
    case OP_DIV:
    case OP_MOD:
        push(stack, divided(stack, a, b, op));
        break;
    case OP_MINUS:
        push(stack, a - b);
        break;
    case OP_MUL:
        push(stack, a * b);
        break;
    case OP_OR:
        push(stack, a | b);
        break;
    case OP_PLUS:
        push(stack, a + b);
        break;
    case OP_SHL:
    case OP_SHR:
    case OP_SHRA:
        push(stack, shifted(a, b, op));
        break;
    case OP_XOR:
        push(stack, a ^ b);
        break;
    default:
        push(stack, compared((intptr_t)a, (intptr_t)b, op));
    }
}

static void branch(struct expr_stack *stack, const uint8_t *start, bool taken)
{
    struct cursor *code = stack->code;
    int64_t delta = cursor_int(code, 2);
    if (!taken)
        return;
    if (delta < start - code->at || delta > code->end - code->at) {
        cursor_fail(code);
        return;
    }
    code->at += delta;
}

/* Operations on constants and on the stack itself. False if `op` is none of them. */
static bool run_stack(struct expr_stack *stack, unsigned op)
{
    struct cursor *code = stack->code;
    switch (op) {
    case OP_ADDR:
        push(stack, cursor_uint(code, 8));
        return true;
    case OP_CONSTU:
        push(stack, cursor_uleb(code));
        return true;
    case OP_CONSTS:
        push(stack, (uintptr_t)cursor_sleb(code));
        return true;
    case OP_DUP:
        pick(stack, 0);
        return true;
    case OP_DROP:
        pop(stack);
        return true;
    case OP_OVER:
        pick(stack, 1);
        return true;
    case OP_PICK:
        pick(stack, cursor_u8(code));
        return true;
    case OP_SWAP:
        swap(stack);
        return true;
    case OP_ROT:
        rotate(stack);
        return true;
    case OP_PLUS_UCONST: {
        uint64_t n = cursor_uleb(code);
        push(stack, pop(stack) + n);
        return true;
    }
    case OP_NOP:
        return true;
    default:
        break;
    }
    if (op >= OP_CONST1U && op <= OP_CONST8S) { /* 1u 1s 2u 2s 4u 4s 8u 8s */
        size_t size = (size_t)1 << ((op - OP_CONST1U) / 2);
        bool is_signed = (op - OP_CONST1U) % 2 != 0;
        push(stack, is_signed ? (uintptr_t)cursor_int(code, size) : cursor_uint(code, size));
        return true;
    }
    if (op >= OP_LIT0 && op <= OP_LIT31) {
        push(stack, op - OP_LIT0);
        return true;
    }
    return false;
}

static void run_one(struct expr_machine *machine, struct expr_stack *stack, const uint8_t *start)
{
    struct cursor *code = stack->code;
    unsigned op = cursor_u8(code);
    if (run_stack(stack, op))
        return;
    if (op >= OP_BREG0 && op <= OP_BREG31) {
        push_register(machine, stack, op - OP_BREG0, cursor_sleb(code));
    } else if (op == OP_BREGX) {
        uint64_t reg = cursor_uleb(code);
        push_register(machine, stack, reg, cursor_sleb(code));
    } else if (op == OP_DEREF) {
        dereference(machine, stack);
    } else if (op == OP_SKIP) {
        branch(stack, start, true);
    } else if (op == OP_BRA) {
        branch(stack, start, pop(stack) != 0);
    } else if (op == OP_ABS || op == OP_NEG || op == OP_NOT) {
        unary(stack, op);
    } else if (op >= OP_AND && op <= OP_NE) {
        binary(stack, op);
    } else {
        cursor_fail(code);
    }
}

bool expr_evaluate(struct expr_machine *machine, struct cursor code, const uintptr_t *first,
                   uintptr_t *value)
{
    struct expr_stack *stack = &machine->stack;
    const uint8_t *start = code.at;
    unsigned steps = 0;
    stack->code = &code;
    stack->depth = 0;
    if (first != NULL)
        push(stack, *first);
    while (code.at != code.end) {
        if (steps++ == STEPS_MAX)
            return false;
        run_one(machine, stack, start);
    }
    uintptr_t top = pop(stack);
    if (code.is_bad)
        return false;
    *value = top;
    return true;
}
