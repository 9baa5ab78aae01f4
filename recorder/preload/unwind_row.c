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
    const struct cfi_function *function;
    struct cfi_row *row;
    const struct cfi_row *initial; /* NULL while the common instructions run */
    uintptr_t address;             /* where to stop */
    uintptr_t location;
    struct cursor *code;
    unsigned depth;
    struct cfi_row *remembered;
};

static int32_t narrow(struct machine *machine, int64_t value)
{
    if (value < INT32_MIN || value > INT32_MAX) {
        cursor_fail(machine->code);
        return 0;
    }
    return (int32_t)value;
}

static int64_t factored(struct machine *machine, int64_t factor)
{
    int64_t value;
    if (__builtin_mul_overflow(factor, machine->function->data_align, &value)) {
        cursor_fail(machine->code);
        return 0;
    }
    return value;
}

/* Registers that we do not follow (vector registers, say) are read and dropped. */
static void set_rule(struct machine *machine, uint64_t reg, enum cfi_how how, int64_t value)
{
    if (reg < CFI_REGS)
        machine->row->reg[reg] = (struct cfi_rule){how, narrow(machine, value)};
}

static void restore_rule(struct machine *machine, uint64_t reg)
{
    if (reg < CFI_REGS) {
        struct cfi_rule rule = {CFI_SAME, 0};
        machine->row->reg[reg] = machine->initial != NULL ? machine->initial->reg[reg] : rule;
    }
}

/* What follows changes one of register and offset: there must be both. */
static void need_cfa_reg(struct machine *machine)
{
    if (machine->row->cfa_is_expr)
        cursor_fail(machine->code);
}

static void set_cfa_reg(struct machine *machine, uint64_t reg)
{
    if (reg >= CFI_RA) {
        cursor_fail(machine->code);
        return;
    }
    machine->row->cfa_is_expr = false;
    machine->row->cfa_reg = (uint32_t)reg;
}

/* Checks the expression that stands here and skips it; gives its place. */
static int64_t take_expression(struct machine *machine)
{
    uint64_t place = (uintptr_t)machine->code->at - machine->function->span.low;
    cursor_skip(machine->code, cursor_uleb(machine->code));
    return place > INT32_MAX ? INT64_MAX : (int64_t)place;
}

static void remember(struct machine *machine)
{
    if (machine->depth == CFI_REMEMBERED) {
        cursor_fail(machine->code);
        return;
    }
    machine->remembered[machine->depth++] = *machine->row;
}

static void recall(struct machine *machine)
{
    if (machine->depth == 0) {
        cursor_fail(machine->code);
        return;
    }
    *machine->row = machine->remembered[--machine->depth];
}

/* False if the instructions that follow are for later addresses. */
static bool advance(struct machine *machine, uint64_t delta)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(delta, machine->function->code_align, &bytes) ||
        __builtin_add_overflow(machine->location, bytes, &machine->location)) {
        cursor_fail(machine->code);
        return false;
    }
    return machine->location <= machine->address;
}

static void run_register(struct machine *machine, unsigned op)
{
    struct cursor *code = machine->code;
    uint64_t reg = cursor_uleb(code);
    switch (op) {
    case CFA_OFFSET_EXTENDED:
        set_rule(machine, reg, CFI_OFFSET, factored(machine, (int64_t)cursor_uleb(code)));
        break;
    case CFA_OFFSET_EXTENDED_SF:
        set_rule(machine, reg, CFI_OFFSET, factored(machine, cursor_sleb(code)));
        break;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        set_rule(machine, reg, CFI_OFFSET,
                 factored(machine, -(int64_t)(cursor_uleb(code) & INT64_MAX)));
        break;
    case CFA_VAL_OFFSET:
        set_rule(machine, reg, CFI_VAL_OFFSET, factored(machine, (int64_t)cursor_uleb(code)));
        break;
    case CFA_VAL_OFFSET_SF:
        set_rule(machine, reg, CFI_VAL_OFFSET, factored(machine, cursor_sleb(code)));
        break;
    case CFA_RESTORE_EXTENDED:
        restore_rule(machine, reg);
        break;
    case CFA_UNDEFINED:
        set_rule(machine, reg, CFI_UNDEFINED, 0);
        break;
    case CFA_SAME_VALUE:
        set_rule(machine, reg, CFI_SAME, 0);
        break;
    case CFA_REGISTER: {
        uint64_t other = cursor_uleb(code);
        set_rule(machine, reg, CFI_REGISTER, (int64_t)(other < CFI_REGS ? other : INT64_MAX));
        break;
    }
    case CFA_EXPRESSION:
        set_rule(machine, reg, CFI_EXPR, take_expression(machine));
        break;
    case CFA_VAL_EXPRESSION:
        set_rule(machine, reg, CFI_VAL_EXPR, take_expression(machine));
        break;
    default:
        cursor_fail(code);
    }
}

static void run_cfa(struct machine *machine, unsigned op)
{
    struct cursor *code = machine->code;
    switch (op) {
    case CFA_DEF_CFA:
        set_cfa_reg(machine, cursor_uleb(code));
        machine->row->cfa_offset = narrow(machine, (int64_t)cursor_uleb(code));
        break;
    case CFA_DEF_CFA_SF:
        set_cfa_reg(machine, cursor_uleb(code));
        machine->row->cfa_offset = narrow(machine, factored(machine, cursor_sleb(code)));
        break;
    case CFA_DEF_CFA_REGISTER:
        need_cfa_reg(machine);
        set_cfa_reg(machine, cursor_uleb(code));
        break;
    case CFA_DEF_CFA_OFFSET:
        need_cfa_reg(machine);
        machine->row->cfa_offset = narrow(machine, (int64_t)cursor_uleb(code));
        break;
    case CFA_DEF_CFA_OFFSET_SF:
        need_cfa_reg(machine);
        machine->row->cfa_offset = narrow(machine, factored(machine, cursor_sleb(code)));
        break;
    default: /* CFA_DEF_CFA_EXPRESSION */
        machine->row->cfa_is_expr = true;
        machine->row->cfa_offset = narrow(machine, take_expression(machine));
    }
}

/* One instruction. False when the row is complete. */
static bool run_one(struct machine *machine)
{
    struct cursor *code = machine->code;
    unsigned op = cursor_u8(code);
    switch (op & 0xc0) {
    case CFA_ADVANCE_LOC:
        return advance(machine, op & 0x3f);
    case CFA_OFFSET:
        set_rule(machine, op & 0x3f, CFI_OFFSET, factored(machine, (int64_t)cursor_uleb(code)));
        return true;
    case CFA_RESTORE:
        restore_rule(machine, op & 0x3f);
        return true;
    default:
        break;
    }
    switch (op) {
    case CFA_NOP:
        return true;
    case CFA_SET_LOC:
        machine->location = cursor_pointer(code, machine->function->encoding, 0);
        return machine->location <= machine->address;
    case CFA_ADVANCE_LOC1:
        return advance(machine, cursor_uint(code, 1));
    case CFA_ADVANCE_LOC2:
        return advance(machine, cursor_uint(code, 2));
    case CFA_ADVANCE_LOC4:
        return advance(machine, cursor_uint(code, 4));
    case CFA_REMEMBER_STATE:
        remember(machine);
        return true;
    case CFA_RESTORE_STATE:
        recall(machine);
        return true;
    case CFA_GNU_ARGS_SIZE:
        cursor_uleb(code);
        return true;
    case CFA_DEF_CFA:
    case CFA_DEF_CFA_SF:
    case CFA_DEF_CFA_REGISTER:
    case CFA_DEF_CFA_OFFSET:
    case CFA_DEF_CFA_OFFSET_SF:
    case CFA_DEF_CFA_EXPRESSION:
        run_cfa(machine, op);
        return true;
    default:
        run_register(machine, op);
        return true;
    }
}

static bool run(struct machine *machine, struct cursor *code)
{
    machine->code = code;
    while (code->at != code->end && run_one(machine)) {
    }
    return !code->is_bad;
}

/*
 * Whether the last run can go on: it was of the same function, and all that it has run is for
 * addresses up to one that is not beyond `addr`. Calls of a function are mostly met in their order,
 * and to begin anew for each would take time in proportion to the square of their number.
 */
static bool can_go_on(const struct cfi_lookup *lookup, uintptr_t address)
{
    const struct cfi_run *last = &lookup->run;
    return last->specific != NULL && last->specific == lookup->function.specific.at &&
           last->next.end == lookup->function.specific.end &&
           last->common == lookup->function.common.at && address >= last->address;
}

bool cfi_row(struct cfi_lookup *lookup, uintptr_t address)
{
    const struct cfi_function *function = &lookup->function;
    struct cfi_run *last = &lookup->run;
    struct machine machine = {.function = function,
                              .row = &lookup->row,
                              .remembered = lookup->remembered,
                              .address = address};
    bool goes_on = can_go_on(lookup, address);
    if (goes_on) {
        machine.location = last->location;
        machine.depth = last->depth;
    } else {
        struct cursor common = function->common;
        lookup->row = (struct cfi_row){.cfa_reg = CFI_RSP, .cfa_offset = 8};
        machine.location = function->start;
        last->specific = NULL;
        if (!run(&machine, &common))
            return false;
        lookup->initial = lookup->row;
        last->next = function->specific;
        machine.location = function->start;
    }
    machine.initial = &lookup->initial;
    /* Where the last run ended behind an advance, it had come to the first row that is not its. */
    bool is_complete = goes_on && machine.location > address;
    if (!is_complete && !run(&machine, &last->next)) {
        last->specific = NULL;
        return false;
    }
    last->specific = function->specific.at;
    last->common = function->common.at;
    last->address = address;
    last->location = machine.location;
    last->depth = machine.depth;
    return true;
}

void cfi_forget(struct cfi_lookup *lookup)
{
    lookup->run.specific = NULL;
}
