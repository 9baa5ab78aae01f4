/* SPDX-License-Identifier: MIT */
/* Turns the frames of a walk into those of the last capture, with the words that they rest on. */
#include "state.h"

/* The rule of a frame if the step from it depends on nothing but the state; else RULE_NONE. */
static unwind_rule plain_rule(const struct new_frame *frame)
{
    bool is_plain = frame->kind == NEW_FRAME_FAST && rule_kind(frame->rule) <= RULE_BP;
    return is_plain ? frame->rule : RULE_NONE;
}

/* Whether rbp is live at a frame, given whether it is live at the caller. */
static bool is_live_at(const struct new_frame *frame, bool is_live_at_caller)
{
    if ((frame->kind & NEW_FRAME_GENERAL) == 0 && rule_kind(frame->rule) == RULE_SP)
        return rule_bp(frame->rule) == 0 && is_live_at_caller;
    return rule_kind(frame->rule) != RULE_END;
}

/* Adds the words that a step other than by rsp or rbp has read. */
static __attribute__((noinline)) struct check *
add_general_checks(struct unwinder *unwinder, struct check *next, const struct new_frame *frame,
                   const struct unwind_regs *caller, bool is_live)
{
    if ((frame->kind & NEW_FRAME_GENERAL) != 0) {
        for (uint32_t i = 0; i < frame->read_count; i++) {
            const struct step_read *read = &unwinder->reads[frame->first_read + i];
            *next++ = (struct check){read->addr, read->value};
        }
        return next;
    }
    switch (rule_kind(frame->rule)) {
    case RULE_DRAP:
        *next++ = (struct check){frame->state.bp + rule_offset(frame->rule), caller->sp};
        *next++ = (struct check){caller->sp - 8, caller->pc};
        if (is_live)
            *next++ = (struct check){frame->state.bp, caller->bp};
        return next;
    case RULE_NO_CFI:
    case RULE_STRAY:
        *next++ = (struct check){caller->sp - 8, caller->pc};
        *next++ = (struct check){caller->sp - 16, caller->bp};
        return next;
    default:
        return next;
    }
}

/*
 * Adds the words that the step from `frame` to its caller has read. Those that rbp was loaded from
 * count only if it is live at the caller. Returns the end of what was added to `next`.
 */
static inline struct check *add_checks(struct unwinder *unwinder, struct check *next,
                                       const struct new_frame *frame,
                                       const struct unwind_regs *caller, bool is_live)
{
    if (next + UNWIND_STEP_READS > unwinder->checks + unwinder->check_max) {
        unwinder->meetable = 0; /* no frame may be met unchecked */
        return next;
    }
    if (__builtin_expect(plain_rule(frame) == RULE_NONE, 0))
        return add_general_checks(unwinder, next, frame, caller, is_live);
    *next++ = (struct check){caller->sp - 8, caller->pc};
    if (is_live && rule_bp(frame->rule) != 0)
        *next++ = (struct check){caller->sp - rule_bp(frame->rule), caller->bp};
    return next;
}

void unwinder_remember(struct unwinder *unwinder, const struct walk *walk, uint32_t kept,
                       bool is_live)
{
    bool is_checked = !walk->mem.is_foreign;
    uint32_t remaining = walk->new_count;
    struct check *next = unwinder->checks;
    unwinder->meetable = is_checked ? UINT32_MAX : kept;
    if (kept > 0) {
        struct known_frame *met = &unwinder->frames[kept - 1];
        next += met->first_check;
        is_live = met->is_bp_live;
        met->bp = walk->state.bp;
        /* The words through which this walk arrived replace those of the last one. */
        if (remaining > 0 && is_checked)
            next = add_checks(unwinder, next, &unwinder->new_frames[remaining - 1], &walk->state,
                              is_live);
    }
    unwinder->depth = kept + remaining;
    for (uint32_t i = kept; remaining > 0; i++) {
        const struct new_frame *frame = &unwinder->new_frames[--remaining];
        is_live = is_live_at(frame, is_live);
        unwinder->pcs[i] = frame->state.pc;
        unwinder->frames[i] = (struct known_frame){
            .sp = frame->state.sp,
            .bp = frame->state.bp,
            .rule = plain_rule(frame),
            .first_check = (uint32_t)(next - unwinder->checks),
            .is_bp_live = is_live,
        };
        if ((frame->kind & NEW_FRAME_ODD) != 0 && i < unwinder->meetable)
            unwinder->meetable = i;
        if (remaining > 0 && is_checked)
            next = add_checks(unwinder, next, &unwinder->new_frames[remaining - 1], &frame->state,
                              is_live);
    }
    unwinder->check_count = (uint32_t)(next - unwinder->checks);
}
