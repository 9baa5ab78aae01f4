/* SPDX-License-Identifier: MIT */
#include "unwind_cfi.h"

/* Runs the instructions of a function up to an address. */

/* Compilers nest one or two deep; the stack that we run on may be small. */

enum {
    CFA_ADVANCE_LOC = 0x40, /* these three hold an operand in their low 6 bits */
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

struct machine {
    const struct cfi_function *f;
    struct cfi_row *row;
    const struct cfi_row *initial; /* NULL while the common instructions run */
    uintptr_t addr;                /* where to stop */
    uintptr_t loc;
    struct cursor *c;
    unsigned depth;
    struct cfi_row *remembered;
};

static int32_t narrow(struct machine *m, int64_t v)
{
    if (v < INT32_MIN || v > INT32_MAX) {
        cursor_fail(m->c);
        return 0;
    }
    return (int32_t)v;
}

static int64_t factored(struct machine *m, int64_t n)
{
    int64_t v;
    if (__builtin_mul_overflow(n, m->f->data_align, &v)) {
        cursor_fail(m->c);
        return 0;
    }
    return v;
}

/* Registers that we do not follow (vector registers, say) are read and dropped. */
static void set_rule(struct machine *m, uint64_t reg, enum cfi_how how, int64_t value)
{
    if (reg < CFI_REGS)
        m->row->reg[reg] = (struct cfi_rule){how, narrow(m, value)};
}

static void restore_rule(struct machine *m, uint64_t reg)
{
    if (reg < CFI_REGS) {
        struct cfi_rule rule = {CFI_SAME, 0};
        m->row->reg[reg] = m->initial != NULL ? m->initial->reg[reg] : rule;
    }
}

/* What follows changes one of register and offset: there must be both. */
static void need_cfa_reg(struct machine *m)
{
    if (m->row->cfa_is_expr)
        cursor_fail(m->c);
}

static void set_cfa_reg(struct machine *m, uint64_t reg)
{
    if (reg >= CFI_RA) {
        cursor_fail(m->c);
        return;
    }
    m->row->cfa_is_expr = false;
    m->row->cfa_reg = (uint32_t)reg;
}

/* Checks the expression that stands here and skips it; gives its place. */
static int64_t take_expression(struct machine *m)
{
    uint64_t place = (uintptr_t)m->c->p - m->f->span.low;
    cursor_skip(m->c, cursor_uleb(m->c));
    return place > INT32_MAX ? INT64_MAX : (int64_t)place;
}

static void remember(struct machine *m)
{
    if (m->depth == CFI_REMEMBERED) {
        cursor_fail(m->c);
        return;
    }
    m->remembered[m->depth++] = *m->row;
}

static void recall(struct machine *m)
{
    if (m->depth == 0) {
        cursor_fail(m->c);
        return;
    }
    *m->row = m->remembered[--m->depth];
}

/* False if the instructions that follow are for later addresses. */
static bool advance(struct machine *m, uint64_t delta)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(delta, m->f->code_align, &bytes) ||
        __builtin_add_overflow(m->loc, bytes, &m->loc)) {
        cursor_fail(m->c);
        return false;
    }
    return m->loc <= m->addr;
}

static void run_register(struct machine *m, unsigned op)
{
    struct cursor *c = m->c;
    uint64_t reg = cursor_uleb(c);
    switch (op) {
    case CFA_OFFSET_EXTENDED:
        set_rule(m, reg, CFI_OFFSET, factored(m, (int64_t)cursor_uleb(c)));
        break;
    case CFA_OFFSET_EXTENDED_SF:
        set_rule(m, reg, CFI_OFFSET, factored(m, cursor_sleb(c)));
        break;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        set_rule(m, reg, CFI_OFFSET, factored(m, -(int64_t)(cursor_uleb(c) & INT64_MAX)));
        break;
    case CFA_VAL_OFFSET:
        set_rule(m, reg, CFI_VAL_OFFSET, factored(m, (int64_t)cursor_uleb(c)));
        break;
    case CFA_VAL_OFFSET_SF:
        set_rule(m, reg, CFI_VAL_OFFSET, factored(m, cursor_sleb(c)));
        break;
    case CFA_RESTORE_EXTENDED:
        restore_rule(m, reg);
        break;
    case CFA_UNDEFINED:
        set_rule(m, reg, CFI_UNDEFINED, 0);
        break;
    case CFA_SAME_VALUE:
        set_rule(m, reg, CFI_SAME, 0);
        break;
    case CFA_REGISTER: {
        uint64_t other = cursor_uleb(c);
        set_rule(m, reg, CFI_REGISTER, (int64_t)(other < CFI_REGS ? other : INT64_MAX));
        break;
    }
    case CFA_EXPRESSION:
        set_rule(m, reg, CFI_EXPR, take_expression(m));
        break;
    case CFA_VAL_EXPRESSION:
        set_rule(m, reg, CFI_VAL_EXPR, take_expression(m));
        break;
    default:
        cursor_fail(c);
    }
}

static void run_cfa(struct machine *m, unsigned op)
{
    struct cursor *c = m->c;
    switch (op) {
    case CFA_DEF_CFA:
        set_cfa_reg(m, cursor_uleb(c));
        m->row->cfa_off = narrow(m, (int64_t)cursor_uleb(c));
        break;
    case CFA_DEF_CFA_SF:
        set_cfa_reg(m, cursor_uleb(c));
        m->row->cfa_off = narrow(m, factored(m, cursor_sleb(c)));
        break;
    case CFA_DEF_CFA_REGISTER:
        need_cfa_reg(m);
        set_cfa_reg(m, cursor_uleb(c));
        break;
    case CFA_DEF_CFA_OFFSET:
        need_cfa_reg(m);
        m->row->cfa_off = narrow(m, (int64_t)cursor_uleb(c));
        break;
    case CFA_DEF_CFA_OFFSET_SF:
        need_cfa_reg(m);
        m->row->cfa_off = narrow(m, factored(m, cursor_sleb(c)));
        break;
    default: /* CFA_DEF_CFA_EXPRESSION */
        m->row->cfa_is_expr = true;
        m->row->cfa_off = narrow(m, take_expression(m));
    }
}

/* One instruction. False when the row is complete. */
static bool run_one(struct machine *m)
{
    struct cursor *c = m->c;
    unsigned op = cursor_u8(c);
    switch (op & 0xc0) {
    case CFA_ADVANCE_LOC:
        return advance(m, op & 0x3f);
    case CFA_OFFSET:
        set_rule(m, op & 0x3f, CFI_OFFSET, factored(m, (int64_t)cursor_uleb(c)));
        return true;
    case CFA_RESTORE:
        restore_rule(m, op & 0x3f);
        return true;
    default:
        break;
    }
    switch (op) {
    case CFA_NOP:
        return true;
    case CFA_SET_LOC:
        m->loc = cursor_pointer(c, m->f->encoding, 0);
        return m->loc <= m->addr;
    case CFA_ADVANCE_LOC1:
        return advance(m, cursor_uint(c, 1));
    case CFA_ADVANCE_LOC2:
        return advance(m, cursor_uint(c, 2));
    case CFA_ADVANCE_LOC4:
        return advance(m, cursor_uint(c, 4));
    case CFA_REMEMBER_STATE:
        remember(m);
        return true;
    case CFA_RESTORE_STATE:
        recall(m);
        return true;
    case CFA_GNU_ARGS_SIZE:
        cursor_uleb(c);
        return true;
    case CFA_DEF_CFA:
    case CFA_DEF_CFA_SF:
    case CFA_DEF_CFA_REGISTER:
    case CFA_DEF_CFA_OFFSET:
    case CFA_DEF_CFA_OFFSET_SF:
    case CFA_DEF_CFA_EXPRESSION:
        run_cfa(m, op);
        return true;
    default:
        run_register(m, op);
        return true;
    }
}

static bool run(struct machine *m, struct cursor *c)
{
    m->c = c;
    while (c->p != c->end && run_one(m)) {
    }
    return !c->bad;
}

/*
 * Whether the last run can go on: it was of the same function, and all that it has run is for
 * addresses up to one that is not beyond `addr`. Calls of a function are mostly met in their order,
 * and to begin anew for each would take time in proportion to the square of their number.
 */
static bool can_go_on(const struct cfi_lookup *l, uintptr_t addr)
{
    const struct cfi_run *last = &l->run;
    return last->specific != NULL && last->specific == l->function.specific.p &&
           last->c.end == l->function.specific.end && last->common == l->function.common.p &&
           addr >= last->addr;
}

bool cfi_row(struct cfi_lookup *l, uintptr_t addr)
{
    const struct cfi_function *f = &l->function;
    struct cfi_run *r = &l->run;
    struct machine m = {.f = f, .row = &l->row, .remembered = l->remembered, .addr = addr};
    bool goes_on = can_go_on(l, addr);
    if (goes_on) {
        m.loc = r->loc;
        m.depth = r->depth;
    } else {
        struct cursor common = f->common;
        l->row = (struct cfi_row){.cfa_reg = CFI_RSP, .cfa_off = 8};
        m.loc = f->start;
        r->specific = NULL;
        if (!run(&m, &common))
            return false;
        l->initial = l->row;
        r->c = f->specific;
        m.loc = f->start;
    }
    m.initial = &l->initial;
    /* Where the last run ended behind an advance, it had come to the first row that is not its. */
    bool is_complete = goes_on && m.loc > addr;
    if (!is_complete && !run(&m, &r->c)) {
        r->specific = NULL;
        return false;
    }
    r->specific = f->specific.p;
    r->common = f->common.p;
    r->addr = addr;
    r->loc = m.loc;
    r->depth = m.depth;
    return true;
}

void cfi_forget(struct cfi_lookup *l)
{
    l->run.specific = NULL;
}
