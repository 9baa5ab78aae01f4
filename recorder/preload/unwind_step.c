/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* _dl_find_object */
#endif
#include "unwind_step.h"

#include "unwind_expr.h"
#include "unwind_scratch.h"

#include <dlfcn.h>

static bool get_reg(struct expr_machine *machine, uint32_t reg, uintptr_t *value)
{
    return expr_register(machine, reg, value);
}

static bool find_cfa(struct expr_machine *machine, const struct cfi_function *function,
                     const struct cfi_row *row, uintptr_t *cfa)
{
    if (row->cfa_is_expr)
        return expr_evaluate(machine, cfi_expression(&function->span, row->cfa_offset), NULL, cfa);
    if (!get_reg(machine, row->cfa_reg, cfa))
        return false;
    *cfa += (uintptr_t)(intptr_t)row->cfa_offset;
    return true;
}

/* What `reg` held in the caller. */
static bool find_reg(struct expr_machine *machine, const struct cfi_function *function,
                     uint32_t reg, struct cfi_rule rule, uintptr_t cfa, uintptr_t *value)
{
    uintptr_t place = cfa + (uintptr_t)(intptr_t)rule.value;
    switch ((enum cfi_how)rule.how) {
    case CFI_SAME:
        return get_reg(machine, reg, value);
    case CFI_OFFSET:
        return expr_read(machine, place, value);
    case CFI_VAL_OFFSET:
        *value = place;
        return true;
    case CFI_EXPR:
        return expr_evaluate(machine, cfi_expression(&function->span, rule.value), &cfa, &place) &&
               expr_read(machine, place, value);
    case CFI_VAL_EXPR:
        return expr_evaluate(machine, cfi_expression(&function->span, rule.value), &cfa, value);
    case CFI_REGISTER:
        return get_reg(machine, (uint32_t)rule.value, value);
    case CFI_UNDEFINED:
    default:
        return false;
    }
}

/* The registers that matter less: what cannot be found becomes unknown. */
static void find_others(struct expr_machine *machine, const struct cfi_function *function,
                        const struct cfi_row *row, uintptr_t cfa, struct step_regs *caller)
{
    for (uint32_t reg = 0; reg < CFI_RA; reg++) {
        if (reg == CFI_RSP || reg == CFI_RBP)
            continue;
        /* A register that a call may overwrite survives only where the kernel saved it. */
        if (row->reg[reg].how == CFI_SAME && (STEP_CALLEE_SAVED >> reg & 1) == 0)
            continue;
        if (find_reg(machine, function, reg, row->reg[reg], cfa, &caller->reg[reg]))
            caller->known |= 1u << reg;
    }
}

static enum step_result step_by(struct expr_machine *machine, const struct cfi_function *function,
                                const struct cfi_row *row, struct step_regs *caller)
{
    uintptr_t cfa;
    enum step_result failed = STEP_BAD;
    if (row->reg[CFI_RA].how == CFI_UNDEFINED)
        return STEP_END;
    bool ok = row->reg[CFI_RA].how != CFI_SAME && find_cfa(machine, function, row, &cfa) &&
              find_reg(machine, function, CFI_RA, row->reg[CFI_RA], cfa, &caller->reg[CFI_RA]);
    if (!ok)
        return machine->unknown ? STEP_UNKNOWN : failed;
    caller->known = 1u << CFI_RA | 1u << CFI_RSP;
    caller->reg[CFI_RSP] = cfa;
    if (row->reg[CFI_RSP].how != CFI_SAME &&
        !find_reg(machine, function, CFI_RSP, row->reg[CFI_RSP], cfa, &caller->reg[CFI_RSP]))
        return machine->unknown ? STEP_UNKNOWN : failed;
    uint32_t used = machine->log->used;
    if (find_reg(machine, function, CFI_RBP, row->reg[CFI_RBP], cfa, &caller->reg[CFI_RBP]))
        caller->known |= 1u << CFI_RBP;
    if (row->reg[CFI_RBP].how == CFI_SAME)
        machine->log->used = used; /* handed on, not used */
    if (function->is_signal_frame)
        caller->reg[CFI_RA]++;
    struct step_log *log = machine->log;
    machine->log = NULL;
    find_others(machine, function, row, cfa, caller);
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
    if (_dl_find_object((void *)address, &lookup->object) != 0 || !cfi_find(lookup, address) ||
        !cfi_row(lookup, address))
        return STEP_BAD;
    log->is_signal_frame = lookup->function.is_signal_frame;
    scratch->machine.regs = regs;
    scratch->machine.mem = mem;
    scratch->machine.log = log;
    scratch->machine.unknown = false;
    caller->known = 0;
    enum step_result result = step_by(&scratch->machine, &lookup->function, &lookup->row, caller);
    if (result == STEP_DONE)
        *regs = *caller;
    return result;
}
