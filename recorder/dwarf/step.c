/* SPDX-License-Identifier: MIT */
#include "dwarf/step.h"

#include "dwarf/expr.h"
#include "dwarf/cfi.h"

static bool step_find_cfa(struct expr_machine *machine, const struct cfi_function *function,
                          const struct cfi_row *row, uintptr_t *cfa)
{
    if (row->cfa_is_expr) {
        cfi_expression(&function->span, row->cfa_offset, &machine->code);
        return expr_evaluate(machine, NULL, cfa);
    }
    if (!expr_register(machine, row->cfa_reg, cfa))
        return false;
    *cfa += (uintptr_t)(intptr_t)row->cfa_offset;
    return true;
}

/* Finds the value of `reg` in the caller. */
static bool step_find_reg(struct expr_machine *machine, const struct cfi_function *function,
                          uint32_t reg, struct cfi_rule rule, uintptr_t cfa, uintptr_t *value)
{
    uintptr_t address = cfa + (uintptr_t)(intptr_t)rule.value;
    switch ((enum cfi_how)rule.kind) {
    case CFI_SAME:
        return expr_register(machine, reg, value);
    case CFI_OFFSET:
        return expr_read(machine, address, value);
    case CFI_VAL_OFFSET:
        *value = address;
        return true;
    case CFI_EXPR:
        cfi_expression(&function->span, rule.value, &machine->code);
        return expr_evaluate(machine, &cfa, &address) && expr_read(machine, address, value);
    case CFI_VAL_EXPR:
        cfi_expression(&function->span, rule.value, &machine->code);
        return expr_evaluate(machine, &cfa, value);
    case CFI_REGISTER:
        return expr_register(machine, (uint32_t)rule.value, value);
    case CFI_UNDEFINED:
    default:
        return false;
    }
}

/* Finds the registers other than rsp and rbp. Those that cannot be found become unknown. */
static void step_find_others(struct expr_machine *machine, const struct cfi_function *function,
                             const struct cfi_row *row, uintptr_t cfa, struct step_regs *caller)
{
    for (uint32_t reg = 0; reg < CFI_RA; reg++) {
        if (reg == CFI_RSP || reg == CFI_RBP)
            continue;
        /* A register that a call may overwrite survives only where the kernel saved it. */
        if (row->reg[reg].kind == CFI_SAME && (STEP_CALLEE_SAVED >> reg & 1) == 0)
            continue;
        if (step_find_reg(machine, function, reg, row->reg[reg], cfa, &caller->reg[reg]))
            caller->known |= 1u << reg;
    }
}

/* Finds rbp. A function that leaves it alone hands it on: no use. */
static void step_find_bp(struct expr_machine *machine, const struct cfi_function *function,
                         const struct cfi_row *row, uintptr_t cfa, struct step_regs *caller)
{
    uint32_t used = machine->log->used;
    if (step_find_reg(machine, function, CFI_RBP, row->reg[CFI_RBP], cfa, &caller->reg[CFI_RBP]))
        caller->known |= 1u << CFI_RBP;
    if (row->reg[CFI_RBP].kind == CFI_SAME)
        machine->log->used = used;
}

static enum step_result step_by(struct expr_machine *machine, const struct cfi_function *function,
                                const struct cfi_row *row, struct step_regs *caller)
{
    struct cfi_rule pc_rule = row->reg[CFI_RA];
    struct cfi_rule sp_rule = row->reg[CFI_RSP];
    uintptr_t cfa;
    if (pc_rule.kind == CFI_UNDEFINED)
        return STEP_END;
    if (pc_rule.kind == CFI_SAME || !step_find_cfa(machine, function, row, &cfa) ||
        !step_find_reg(machine, function, CFI_RA, pc_rule, cfa, &caller->reg[CFI_RA]))
        return machine->lacks_register ? STEP_UNKNOWN : STEP_BAD;
    caller->reg[CFI_RSP] = cfa;
    if (sp_rule.kind != CFI_SAME &&
        !step_find_reg(machine, function, CFI_RSP, sp_rule, cfa, &caller->reg[CFI_RSP]))
        return machine->lacks_register ? STEP_UNKNOWN : STEP_BAD;
    caller->known = 1u << CFI_RA | 1u << CFI_RSP;
    step_find_bp(machine, function, row, cfa, caller);
    if (function->is_signal_frame)
        caller->reg[CFI_RA]++; /* an address that was interrupted: see unwind.h */
    struct step_log *log = machine->log;
    machine->log = NULL; /* the other registers are no part of a walk's state */
    step_find_others(machine, function, row, cfa, caller);
    machine->log = log;
    return STEP_DONE;
}

enum step_result unwind_step(struct step_regs *regs, struct unwind_mem *mem,
                             struct unwind_scratch *scratch)
{
    struct cfi_lookup *lookup = &scratch->lookup;
    struct step_log *log = &scratch->log;
    struct step_regs *caller = &scratch->caller;
    uintptr_t address = regs->reg[CFI_RA] - 1;
    log->count = 0;
    log->used = 0;
    log->is_signal_frame = false;
    if (!modules_find(lookup, address) || !cfi_find(lookup, address) || !cfi_row(lookup, address))
        return STEP_BAD;
    log->is_signal_frame = lookup->function.is_signal_frame;
    scratch->machine.regs = regs;
    scratch->machine.mem = mem;
    scratch->machine.log = log;
    scratch->machine.lacks_register = false;
    caller->known = 0;
    enum step_result result = step_by(&scratch->machine, &lookup->function, &lookup->row, caller);
    if (result == STEP_DONE)
        *regs = *caller;
    return result;
}
