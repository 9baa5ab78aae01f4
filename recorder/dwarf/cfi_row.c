/* SPDX-License-Identifier: MIT */
/* Runs the call frame instructions of a function up to an address: this makes the row for it. */
#include "dwarf/cfi.h"
#include "dwarf/dwarf.h"

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

static int32_t cfi_row_narrow(struct machine *machine, int64_t value)
{
    if (value < INT32_MIN || value > INT32_MAX) {
        cursor_fail(machine->code);
        return 0;
    }
    return (int32_t)value;
}

static int64_t cfi_row_factored(struct machine *machine, int64_t factor)
{
    int64_t value;
    if (__builtin_mul_overflow(factor, machine->function->data_align, &value)) {
        cursor_fail(machine->code);
        return 0;
    }
    return value;
}

/* Drops the rules of registers that are not followed, such as vector registers. */
static void cfi_row_set_rule(struct machine *machine, uint64_t reg, enum cfi_how kind,
                             int64_t value)
{
    if (reg < CFI_REGS)
        machine->row->reg[reg] = (struct cfi_rule){kind, cfi_row_narrow(machine, value)};
}

static void cfi_row_restore_rule(struct machine *machine, uint64_t reg)
{
    if (reg < CFI_REGS) {
        struct cfi_rule rule = {CFI_SAME, 0};
        machine->row->reg[reg] = machine->initial ? machine->initial->reg[reg] : rule;
    }
}

/* Fails if the CFA is an expression: the instruction changes only its register or its offset. */
static void cfi_row_require_cfa_reg(struct machine *machine)
{
    if (machine->row->cfa_is_expr)
        cursor_fail(machine->code);
}

static void cfi_row_set_cfa_reg(struct machine *machine, uint64_t reg)
{
    if (reg >= CFI_RA) {
        cursor_fail(machine->code);
        return;
    }
    machine->row->cfa_is_expr = false;
    machine->row->cfa_reg = (uint32_t)reg;
}

/* Checks and skips the expression that comes next. Returns its offset in the span. */
static int64_t cfi_row_take_expression(struct machine *machine)
{
    uint64_t offset = cursor_address(machine->code) - machine->function->span.low;
    cursor_skip(machine->code, cursor_uleb(machine->code));
    return offset > INT32_MAX ? INT64_MAX : (int64_t)offset;
}

static void cfi_row_remember(struct machine *machine)
{
    if (machine->depth == CFI_REMEMBERED) {
        cursor_fail(machine->code);
        return;
    }
    machine->remembered[machine->depth++] = *machine->row;
}

static void cfi_row_recall(struct machine *machine)
{
    if (machine->depth == 0) {
        cursor_fail(machine->code);
        return;
    }
    *machine->row = machine->remembered[--machine->depth];
}

/* Advances the location. False if the next instructions are for later addresses. */
static bool cfi_row_advance(struct machine *machine, uint64_t delta)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(delta, machine->function->code_align, &bytes) ||
        __builtin_add_overflow(machine->location, bytes, &machine->location)) {
        cursor_fail(machine->code);
        return false;
    }
    return machine->location <= machine->address;
}

static void cfi_row_run_register(struct machine *machine, unsigned op)
{
    struct cursor *code = machine->code;
    uint64_t reg = cursor_uleb(code);
    switch (op) {
    case CFA_OFFSET_EXTENDED:
        cfi_row_set_rule(machine, reg, CFI_OFFSET,
                         cfi_row_factored(machine, (int64_t)cursor_uleb(code)));
        break;
    case CFA_OFFSET_EXTENDED_SF:
        cfi_row_set_rule(machine, reg, CFI_OFFSET, cfi_row_factored(machine, cursor_sleb(code)));
        break;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        cfi_row_set_rule(machine, reg, CFI_OFFSET,
                         cfi_row_factored(machine, -(int64_t)(cursor_uleb(code) & INT64_MAX)));
        break;
    case CFA_VAL_OFFSET:
        cfi_row_set_rule(machine, reg, CFI_VAL_OFFSET,
                         cfi_row_factored(machine, (int64_t)cursor_uleb(code)));
        break;
    case CFA_VAL_OFFSET_SF:
        cfi_row_set_rule(machine, reg, CFI_VAL_OFFSET,
                         cfi_row_factored(machine, cursor_sleb(code)));
        break;
    case CFA_RESTORE_EXTENDED:
        cfi_row_restore_rule(machine, reg);
        break;
    case CFA_UNDEFINED:
        cfi_row_set_rule(machine, reg, CFI_UNDEFINED, 0);
        break;
    case CFA_SAME_VALUE:
        cfi_row_set_rule(machine, reg, CFI_SAME, 0);
        break;
    case CFA_REGISTER: {
        uint64_t source = cursor_uleb(code);
        cfi_row_set_rule(machine, reg, CFI_REGISTER,
                         (int64_t)(source < CFI_REGS ? source : INT64_MAX));
        break;
    }
    case CFA_EXPRESSION:
        cfi_row_set_rule(machine, reg, CFI_EXPR, cfi_row_take_expression(machine));
        break;
    case CFA_VAL_EXPRESSION:
        cfi_row_set_rule(machine, reg, CFI_VAL_EXPR, cfi_row_take_expression(machine));
        break;
    default:
        cursor_fail(code);
    }
}

static void cfi_row_run_cfa(struct machine *machine, unsigned op)
{
    struct cursor *code = machine->code;
    switch (op) {
    case CFA_DEF_CFA:
        cfi_row_set_cfa_reg(machine, cursor_uleb(code));
        machine->row->cfa_offset = cfi_row_narrow(machine, (int64_t)cursor_uleb(code));
        break;
    case CFA_DEF_CFA_SF:
        cfi_row_set_cfa_reg(machine, cursor_uleb(code));
        machine->row->cfa_offset =
            cfi_row_narrow(machine, cfi_row_factored(machine, cursor_sleb(code)));
        break;
    case CFA_DEF_CFA_REGISTER:
        cfi_row_require_cfa_reg(machine);
        cfi_row_set_cfa_reg(machine, cursor_uleb(code));
        break;
    case CFA_DEF_CFA_OFFSET:
        cfi_row_require_cfa_reg(machine);
        machine->row->cfa_offset = cfi_row_narrow(machine, (int64_t)cursor_uleb(code));
        break;
    case CFA_DEF_CFA_OFFSET_SF:
        cfi_row_require_cfa_reg(machine);
        machine->row->cfa_offset =
            cfi_row_narrow(machine, cfi_row_factored(machine, cursor_sleb(code)));
        break;
    default: /* CFA_DEF_CFA_EXPRESSION */
        machine->row->cfa_is_expr = true;
        machine->row->cfa_offset = cfi_row_narrow(machine, cfi_row_take_expression(machine));
    }
}

/* Runs one instruction. False when the row is complete. */
static bool row_run_one(struct machine *machine)
{
    struct cursor *code = machine->code;
    unsigned op = cursor_u8(code);
    switch (op & ~CFA_OPERAND) {
    case CFA_ADVANCE_LOC:
        return cfi_row_advance(machine, op & CFA_OPERAND);
    case CFA_OFFSET:
        cfi_row_set_rule(machine, op & CFA_OPERAND, CFI_OFFSET,
                         cfi_row_factored(machine, (int64_t)cursor_uleb(code)));
        return true;
    case CFA_RESTORE:
        cfi_row_restore_rule(machine, op & CFA_OPERAND);
        return true;
    default:
        break;
    }
    switch (op) {
    case CFA_NOP:
        return true;
    case CFA_SET_LOC:
        machine->location =
            cursor_pointer(code, machine->function->encoding, machine->function->bias);
        return machine->location <= machine->address;
    case CFA_ADVANCE_LOC1:
        return cfi_row_advance(machine, cursor_uint(code, 1));
    case CFA_ADVANCE_LOC2:
        return cfi_row_advance(machine, cursor_uint(code, 2));
    case CFA_ADVANCE_LOC4:
        return cfi_row_advance(machine, cursor_uint(code, 4));
    case CFA_REMEMBER_STATE:
        cfi_row_remember(machine);
        return true;
    case CFA_RESTORE_STATE:
        cfi_row_recall(machine);
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
        cfi_row_run_cfa(machine, op);
        return true;
    default:
        cfi_row_run_register(machine, op);
        return true;
    }
}

static bool row_run(struct machine *machine, struct cursor *code)
{
    machine->code = code;
    while (code->next != code->end && row_run_one(machine)) {
    }
    return !code->is_bad;
}

/*
 * Whether the last run can be continued: it was of the same function and of an address that is not
 * beyond `address`. The calls of a function are mostly made in the order of their addresses; a run
 * from the beginning for each of them would take time in proportion to the square of their number.
 */
static bool cfi_row_can_continue(const struct cfi_lookup *lookup, uintptr_t address)
{
    const struct cfi_run *last = &lookup->run;
    return last->specific && last->specific == lookup->function.specific.next &&
           last->next.end == lookup->function.specific.end &&
           last->common == lookup->function.common.next && address >= last->address;
}

bool cfi_row(struct cfi_lookup *lookup, uintptr_t address)
{
    const struct cfi_function *function = &lookup->function;
    struct cfi_run *last = &lookup->run;
    struct machine machine = {.function = function,
                              .row = &lookup->row,
                              .remembered = lookup->remembered,
                              .address = address};
    bool continues = cfi_row_can_continue(lookup, address);
    if (continues) {
        machine.location = last->location;
        machine.depth = last->depth;
    } else {
        struct cursor common = function->common;
        lookup->row = (struct cfi_row){.cfa_reg = CFI_RSP, .cfa_offset = 8};
        machine.location = function->start;
        last->specific = NULL;
        /* They hold for the whole function: an advance among them is corrupt. */
        if (!row_run(&machine, &common) || machine.location != function->start)
            return false;
        lookup->initial = lookup->row;
        last->next = function->specific;
        machine.location = function->start;
    }
    machine.initial = &lookup->initial;
    /* The last run ended with an advance: it may have come to a location beyond `address` already.
     */
    bool is_complete = continues && machine.location > address;
    if (!is_complete && !row_run(&machine, &last->next)) {
        last->specific = NULL;
        return false;
    }
    last->specific = function->specific.next;
    last->common = function->common.next;
    last->address = address;
    last->location = machine.location;
    last->depth = machine.depth;
    return true;
}

void cfi_forget(struct cfi_lookup *lookup)
{
    lookup->run.specific = NULL;
}
