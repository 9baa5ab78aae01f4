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

static void push(struct expr_stack *s, uintptr_t v)
{
    if (s->depth == EXPR_STACK_MAX) {
        cursor_fail(s->c);
        return;
    }
    s->v[s->depth++] = v;
}

static uintptr_t pop(struct expr_stack *s)
{
    if (s->depth == 0) {
        cursor_fail(s->c);
        return 0;
    }
    return s->v[--s->depth];
}

static void pick(struct expr_stack *s, unsigned n)
{
    if (n >= s->depth) {
        cursor_fail(s->c);
        return;
    }
    push(s, s->v[s->depth - 1 - n]);
}

bool expr_register(struct expr_machine *m, uint64_t reg, uintptr_t *value)
{
    if (reg >= CFI_REGS || (m->regs->known >> reg & 1) == 0) {
        m->unknown = true;
        return false;
    }
    if (m->log != NULL)
        m->log->used |= 1u << reg;
    /* The address is only ever asked for where a frame was interrupted. */
    *value = m->regs->reg[reg] - (reg == CFI_RA);
    return true;
}

bool expr_read(struct expr_machine *m, uintptr_t addr, uintptr_t *value)
{
    if (!unwind_read(m->mem, addr, value))
        return false;
    if (m->log != NULL && m->log->count++ < UNWIND_STEP_READS)
        m->log->read[m->log->count - 1] = (struct step_read){addr, *value};
    return true;
}

static void push_register(struct expr_machine *m, struct expr_stack *s, uint64_t reg,
                          int64_t offset)
{
    uintptr_t v;
    if (!expr_register(m, reg, &v)) {
        cursor_fail(s->c);
        return;
    }
    push(s, v + (uintptr_t)offset);
}

static void dereference(struct expr_machine *m, struct expr_stack *s)
{
    uintptr_t v;
    if (!expr_read(m, pop(s), &v)) {
        cursor_fail(s->c);
        return;
    }
    push(s, v);
}

static void swap(struct expr_stack *s)
{
    uintptr_t a = pop(s);
    uintptr_t b = pop(s);
    push(s, a);
    push(s, b);
}

static void rotate(struct expr_stack *s)
{
    uintptr_t a = pop(s);
    uintptr_t b = pop(s);
    uintptr_t c = pop(s);
    push(s, a);
    push(s, c);
    push(s, b);
}

static void unary(struct expr_stack *s, unsigned op)
{
    uintptr_t v = pop(s);
    switch (op) {
    case OP_ABS:
        push(s, (intptr_t)v < 0 ? -v : v);
        break;
    case OP_NEG:
        push(s, -v);
        break;
    default:
        push(s, ~v);
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

static uintptr_t divided(struct expr_stack *s, uintptr_t a, uintptr_t b, unsigned op)
{
    if (b == 0 || (op == OP_DIV && (intptr_t)a == INT64_MIN && (intptr_t)b == -1)) {
        cursor_fail(s->c);
        return 0;
    }
    return op == OP_DIV ? (uintptr_t)((intptr_t)a / (intptr_t)b) : a % b;
}

static void binary(struct expr_stack *s, unsigned op)
{
    uintptr_t b = pop(s);
    uintptr_t a = pop(s);
    switch (op) {
    case OP_AND:
        push(s, a & b);
        break;
    case OP_DIV:
    case OP_MOD:
        push(s, divided(s, a, b, op));
        break;
    case OP_MINUS:
        push(s, a - b);
        break;
    case OP_MUL:
        push(s, a * b);
        break;
    case OP_OR:
        push(s, a | b);
        break;
    case OP_PLUS:
        push(s, a + b);
        break;
    case OP_SHL:
    case OP_SHR:
    case OP_SHRA:
        push(s, shifted(a, b, op));
        break;
    case OP_XOR:
        push(s, a ^ b);
        break;
    default:
        push(s, compared((intptr_t)a, (intptr_t)b, op));
    }
}

static void branch(struct expr_stack *s, const uint8_t *start, bool taken)
{
    struct cursor *c = s->c;
    int64_t delta = cursor_int(c, 2);
    if (!taken)
        return;
    if (delta < start - c->p || delta > c->end - c->p) {
        cursor_fail(c);
        return;
    }
    c->p += delta;
}

/* Operations on constants and on the stack itself. False if `op` is none of them. */
static bool run_stack(struct expr_stack *s, unsigned op)
{
    struct cursor *c = s->c;
    switch (op) {
    case OP_ADDR:
        push(s, cursor_uint(c, 8));
        return true;
    case OP_CONSTU:
        push(s, cursor_uleb(c));
        return true;
    case OP_CONSTS:
        push(s, (uintptr_t)cursor_sleb(c));
        return true;
    case OP_DUP:
        pick(s, 0);
        return true;
    case OP_DROP:
        pop(s);
        return true;
    case OP_OVER:
        pick(s, 1);
        return true;
    case OP_PICK:
        pick(s, cursor_u8(c));
        return true;
    case OP_SWAP:
        swap(s);
        return true;
    case OP_ROT:
        rotate(s);
        return true;
    case OP_PLUS_UCONST: {
        uint64_t n = cursor_uleb(c);
        push(s, pop(s) + n);
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
        push(s, is_signed ? (uintptr_t)cursor_int(c, size) : cursor_uint(c, size));
        return true;
    }
    if (op >= OP_LIT0 && op <= OP_LIT31) {
        push(s, op - OP_LIT0);
        return true;
    }
    return false;
}

static void run_one(struct expr_machine *m, struct expr_stack *s, const uint8_t *start)
{
    struct cursor *c = s->c;
    unsigned op = cursor_u8(c);
    if (run_stack(s, op))
        return;
    if (op >= OP_BREG0 && op <= OP_BREG31) {
        push_register(m, s, op - OP_BREG0, cursor_sleb(c));
    } else if (op == OP_BREGX) {
        uint64_t reg = cursor_uleb(c);
        push_register(m, s, reg, cursor_sleb(c));
    } else if (op == OP_DEREF) {
        dereference(m, s);
    } else if (op == OP_SKIP) {
        branch(s, start, true);
    } else if (op == OP_BRA) {
        branch(s, start, pop(s) != 0);
    } else if (op == OP_ABS || op == OP_NEG || op == OP_NOT) {
        unary(s, op);
    } else if (op >= OP_AND && op <= OP_NE) {
        binary(s, op);
    } else {
        cursor_fail(c);
    }
}

bool expr_evaluate(struct expr_machine *m, struct cursor code, const uintptr_t *first,
                   uintptr_t *value)
{
    struct expr_stack *s = &m->stack;
    const uint8_t *start = code.p;
    unsigned steps = 0;
    s->c = &code;
    s->depth = 0;
    if (first != NULL)
        push(s, *first);
    while (code.p != code.end) {
        if (steps++ == STEPS_MAX)
            return false;
        run_one(m, s, start);
    }
    uintptr_t v = pop(s);
    if (code.bad)
        return false;
    *value = v;
    return true;
}
