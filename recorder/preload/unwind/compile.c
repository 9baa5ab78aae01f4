/* SPDX-License-Identifier: MIT */
#include "preload/unwind/compile.h"

#include "dwarf/dwarf.h"

const uint8_t rule_other_regs[RULE_OTHER_COUNT] = {CFI_RBX, CFI_R12, 13, 14, CFI_R15};

/* Whether an expression is the slot at rbp + `*offset`, or (`is_loaded`) the word in that slot. */
static bool is_bp_slot(const struct cfi_span *span, int32_t expression, bool is_loaded,
                       int64_t *offset)
{
    struct cursor cursor;
    cfi_expression(span, expression, &cursor);
    if (cursor_u8(&cursor) != OP_BREG0 + CFI_RBP)
        return false;
    *offset = cursor_sleb(&cursor);
    if (is_loaded && cursor_u8(&cursor) != OP_DEREF)
        return false;
    return !cursor.is_bad && cursor.next == cursor.end;
}

/* Returns the four bits for a register other than rbp. */
static unsigned pack_other(struct cfi_rule rule)
{
    if (rule.kind == CFI_SAME)
        return 0;
    if (rule.kind == CFI_OFFSET && rule.value % 8 == 0 && rule.value <= -16 &&
        rule.value >= -15 * 8)
        return (unsigned)(-rule.value / 8);
    return RULE_OTHER_UNSAID;
}

static unwind_rule pack_others(const struct cfi_row *row)
{
    unwind_rule rule = 0;
    for (unsigned i = 0; i < RULE_OTHER_COUNT; i++) {
        unwind_rule other = pack_other(row->reg[rule_other_regs[i]]);
        rule |= other << (RULE_OTHER_SHIFT + 4 * i);
    }
    return rule;
}

static bool fits_offset(int64_t offset)
{
    return offset >= -(1 << 25) && offset < 1 << 25;
}

static unwind_rule pack(unsigned kind, int64_t offset, unwind_rule saves)
{
    return kind | saves | (uint64_t)offset << RULE_OFFSET_SHIFT;
}

/* Compiles the row of a frame that gcc has realigned: the CFA is kept in a slot below rbp, and rbp
   is saved where it points to. */
static unwind_rule compile_drap(const struct cfi_span *span, const struct cfi_row *row)
{
    int64_t offset;
    int64_t zero;
    if (!is_bp_slot(span, row->cfa_offset, true, &offset) || !fits_offset(offset) ||
        row->reg[CFI_RBP].kind != CFI_EXPR ||
        !is_bp_slot(span, row->reg[CFI_RBP].value, false, &zero) || zero != 0)
        return RULE_GENERAL;
    return pack(RULE_DRAP, offset, pack_others(row));
}

static unwind_rule compile_row(const struct cfi_span *span, const struct cfi_row *row)
{
    struct cfi_rule pc_rule = row->reg[CFI_RA];
    struct cfi_rule bp_rule = row->reg[CFI_RBP];
    unwind_rule saves = pack_others(row);
    if (pc_rule.kind == CFI_UNDEFINED)
        return RULE_END;
    if (pc_rule.kind != CFI_OFFSET || pc_rule.value != -8 || row->reg[CFI_RSP].kind != CFI_SAME)
        return RULE_GENERAL;
    if (row->cfa_is_expr)
        return compile_drap(span, row);
    if (bp_rule.kind == CFI_OFFSET) {
        if (bp_rule.value % 8 != 0 || bp_rule.value >= 0 ||
            (unsigned)-(bp_rule.value / 8) > RULE_BP_MAX)
            return RULE_GENERAL;
        saves |= (unwind_rule)(-(bp_rule.value / 8)) << RULE_BP_SHIFT;
    } else if (bp_rule.kind != CFI_SAME) {
        return RULE_GENERAL;
    }
    if (!fits_offset(row->cfa_offset))
        return RULE_GENERAL;
    if (row->cfa_reg == CFI_RSP)
        return pack(RULE_SP, row->cfa_offset, saves);
    return row->cfa_reg == CFI_RBP ? pack(RULE_BP, row->cfa_offset, saves) : RULE_GENERAL;
}

unwind_rule rule_compile(struct cfi_lookup *lookup, uintptr_t address)
{
    const struct cfi_function *function = &lookup->function;
    if (!cfi_find(lookup, address) || !cfi_row(lookup, address))
        return RULE_NO_CFI;
    return function->is_signal_frame ? RULE_GENERAL : compile_row(&function->span, &lookup->row);
}
