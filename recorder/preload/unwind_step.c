/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* _dl_find_object */
#endif
#include "unwind_step.h"

#include "unwind_expr.h"
#include "unwind_scratch.h"

#include <dlfcn.h>

/* Kept by every function that follows the ABI: rbx, rbp, rsp, r12 to r15 (and the address). */
#define CALLEE_SAVED 0x1f0c8u

static bool get_reg(struct expr_machine *m, uint32_t reg, uintptr_t *value)
{
    return expr_register(m, reg, value);
}

static bool find_cfa(struct expr_machine *m, const struct cfi_function *f,
                     const struct cfi_row *row, uintptr_t *cfa)
{
    if (row->cfa_is_expr)
        return expr_evaluate(m, cfi_expression(&f->span, row->cfa_off), NULL, cfa);
    if (!get_reg(m, row->cfa_reg, cfa))
        return false;
    *cfa += (uintptr_t)(intptr_t)row->cfa_off;
    return true;
}

/* What `reg` held in the caller. */
static bool find_reg(struct expr_machine *m, const struct cfi_function *f, uint32_t reg,
                     struct cfi_rule rule, uintptr_t cfa, uintptr_t *value)
{
    uintptr_t place = cfa + (uintptr_t)(intptr_t)rule.value;
    switch ((enum cfi_how)rule.how) {
    case CFI_SAME:
        return get_reg(m, reg, value);
    case CFI_OFFSET:
        return expr_read(m, place, value);
    case CFI_VAL_OFFSET:
        *value = place;
        return true;
    case CFI_EXPR:
        return expr_evaluate(m, cfi_expression(&f->span, rule.value), &cfa, &place) &&
               expr_read(m, place, value);
    case CFI_VAL_EXPR:
        return expr_evaluate(m, cfi_expression(&f->span, rule.value), &cfa, value);
    case CFI_REGISTER:
        return get_reg(m, (uint32_t)rule.value, value);
    case CFI_UNDEFINED:
    default:
        return false;
    }
}

/* The registers that matter less: what cannot be found becomes unknown. */
static void find_others(struct expr_machine *m, const struct cfi_function *f,
                        const struct cfi_row *row, uintptr_t cfa, struct step_regs *to)
{
    for (uint32_t reg = 0; reg < CFI_RA; reg++) {
        if (reg == CFI_RSP || reg == CFI_RBP)
            continue;
        /* A register that a call may overwrite survives only where the kernel saved it. */
        if (row->reg[reg].how == CFI_SAME && (CALLEE_SAVED >> reg & 1) == 0)
            continue;
        if (find_reg(m, f, reg, row->reg[reg], cfa, &to->reg[reg]))
            to->known |= 1u << reg;
    }
}

static enum step_result step_by(struct expr_machine *m, const struct cfi_function *f,
                                const struct cfi_row *row, struct step_regs *to)
{
    uintptr_t cfa;
    enum step_result failed = STEP_BAD;
    if (row->reg[CFI_RA].how == CFI_UNDEFINED)
        return STEP_END;
    bool ok = row->reg[CFI_RA].how != CFI_SAME && find_cfa(m, f, row, &cfa) &&
              find_reg(m, f, CFI_RA, row->reg[CFI_RA], cfa, &to->reg[CFI_RA]);
    if (!ok)
        return m->unknown ? STEP_UNKNOWN : failed;
    to->known = 1u << CFI_RA | 1u << CFI_RSP;
    to->reg[CFI_RSP] = cfa;
    if (row->reg[CFI_RSP].how != CFI_SAME &&
        !find_reg(m, f, CFI_RSP, row->reg[CFI_RSP], cfa, &to->reg[CFI_RSP]))
        return m->unknown ? STEP_UNKNOWN : failed;
    uint32_t used = m->log->used;
    if (find_reg(m, f, CFI_RBP, row->reg[CFI_RBP], cfa, &to->reg[CFI_RBP]))
        to->known |= 1u << CFI_RBP;
    if (row->reg[CFI_RBP].how == CFI_SAME)
        m->log->used = used; /* handed on, not used */
    if (f->signal)
        to->reg[CFI_RA]++;
    struct step_log *log = m->log;
    m->log = NULL;
    find_others(m, f, row, cfa, to);
    m->log = log;
    return STEP_DONE;
}

enum step_result unwind_step(struct step_regs *r, struct unwind_mem *mem,
                             struct unwind_scratch *scratch)
{
    struct cfi_lookup *l = &scratch->lookup;
    struct step_log *log = &scratch->log;
    struct step_regs *to = &scratch->caller;
    uintptr_t addr = r->reg[CFI_RA] - 1;
    log->count = 0;
    log->used = 0;
    log->signal = false;
    if (_dl_find_object((void *)addr, &l->object) != 0 || !cfi_find(l, addr) || !cfi_row(l, addr))
        return STEP_BAD;
    log->signal = l->function.signal;
    scratch->machine.regs = r;
    scratch->machine.mem = mem;
    scratch->machine.log = log;
    scratch->machine.unknown = false;
    to->known = 0;
    enum step_result result = step_by(&scratch->machine, &l->function, &l->row, to);
    if (result == STEP_DONE)
        *r = *to;
    return result;
}
