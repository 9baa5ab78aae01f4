/* SPDX-License-Identifier: MIT */
/* Makes the frames of a walk the last capture, with the words that they rest on. */
#include "preload/unwind/unwind_state.h"

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

/* The arrival of a step whose words are all among the checks. */
static const uintptr_t unread;

/*
 * Adds the words that a step other than by rsp or rbp has read. `arrival` is the caller's, by its
 * pc.
 */
static __attribute__((noinline)) struct check *
add_general_checks(struct unwinder *unwinder, struct check *next, const struct new_frame *frame,
                   const struct known_frame *caller, struct check *arrival, bool is_live)
{
    if ((frame->kind & NEW_FRAME_GENERAL) != 0) {
        *arrival = (struct check){(uintptr_t)&unread, unread};
        for (uint32_t i = 0; i < frame->read_count; i++) {
            const struct step_read *read = &unwinder->reads[frame->first_read + i];
            *next++ = (struct check){read->addr, read->value};
        }
        return next;
    }
    switch (rule_kind(frame->rule)) {
    case RULE_DRAP:
        *next++ = (struct check){frame->state.bp + rule_offset(frame->rule), caller->sp};
        if (is_live)
            *next++ = (struct check){frame->state.bp, caller->bp};
        return next;
    case RULE_NO_CFI:
    case RULE_STRAY:
        *next++ = (struct check){caller->sp - 16, caller->bp};
        return next;
    default:
        return next;
    }
}

/*
 * Adds the words that the step from `frame` to frames[caller] has read. Those that rbp was loaded
 * from count only if it is live at the caller. Returns the end of the entries added to `next`.
 */
static inline struct check *add_checks(struct unwinder *unwinder, struct check *next,
                                       const struct new_frame *frame, uint32_t caller, bool is_live)
{
    const struct known_frame *to = &unwinder->frames[caller];
    struct check *arrival = &unwinder->arrivals[caller];
    bool is_plain = plain_rule(frame) != RULE_NONE;
    *arrival = (struct check){to->sp - 8, unwinder->pcs[caller]};
    if (__builtin_expect(is_plain && (!is_live || rule_bp(frame->rule) == 0), 1))
        return next;
    if (next + UNWIND_STEP_READS > unwinder->checks + unwinder->check_max) {
        unwinder->meetable = 0; /* no frame may be met unchecked */
        return next;
    }
    if (!is_plain)
        return add_general_checks(unwinder, next, frame, to, arrival, is_live);
    *next++ = (struct check){to->sp - rule_bp(frame->rule), to->bp};
    return next;
}

void unwinder_remember(struct unwinder *unwinder, const struct walk_place *place, uint32_t kept,
                       bool is_checked, bool is_live)
{
    uint32_t depth = kept + place->new_count;
    const struct new_frame *frame = unwinder->new_frames + place->new_count;
    struct check *next = unwinder->checks;
    unwinder->meetable = is_checked ? UINT32_MAX : kept;
    unwinder->depth = depth;
    if (kept > 0) {
        struct known_frame *met = &unwinder->frames[kept - 1];
        next += met->first_check;
        is_live = met->is_bp_live;
        met->bp = place->state.bp;
    }
    for (uint32_t i = kept; i < depth; i++) {
        frame--;
        /* If the caller was met, the words through which this walk arrived there replace the words
         * of the last one. */
        if (i > 0 && is_checked)
            next = add_checks(unwinder, next, frame, i - 1, is_live);
        is_live = is_live_at(frame, is_live);
        unwinder->pcs[i] = frame->state.pc;
        unwinder->frames[i] = (struct known_frame){
            .sp = frame->state.sp,
            .bp = frame->state.bp,
            .rule = plain_rule(frame),
            .first_check = (uint32_t)(next - unwinder->checks),
            .is_bp_live = is_live,
        };
        if (__builtin_expect((frame->kind & NEW_FRAME_ODD) != 0, 0) && i < unwinder->meetable)
            unwinder->meetable = i;
    }
    unwinder->check_count = (uint32_t)(next - unwinder->checks);
}

void unwinder_remember_plain(struct unwinder *unwinder, const struct walk_place *place)
{
    uint32_t kept = place->candidates, checks = unwinder->frames[kept - 1].first_check;
    struct known_frame *stored = &unwinder->frames[kept];
    struct check *arrival = &unwinder->arrivals[kept - 1];
    uintptr_t *pc = &unwinder->pcs[kept];
    struct unwind_regs caller = place->state;
    bool is_live = stored[-1].is_bp_live;
    stored[-1].bp = caller.bp;
    unwinder->meetable = UINT32_MAX;
    unwinder->depth = kept + place->new_count;
    for (uint32_t remaining = place->new_count; remaining > 0; remaining--) {
        const struct new_frame *frame = &unwinder->new_frames[remaining - 1];
        unwind_rule rule = frame->rule;
        uintptr_t saved = rule_bp(rule);
        *arrival++ = (struct check){caller.sp - 8, caller.pc};
        if (__builtin_expect(is_live && saved != 0, 0)) {
            if (checks < unwinder->check_max)
                unwinder->checks[checks++] = (struct check){caller.sp - saved, caller.bp};
            else
                unwinder->meetable = 0; /* no frame may be met unchecked */
        }
        is_live = rule_kind(rule) != RULE_SP || (is_live && saved == 0);
        caller = frame->state;
        *pc++ = caller.pc;
        *stored++ = (struct known_frame){caller.sp, caller.bp, rule, checks, is_live};
    }
    unwinder->check_count = checks;
}
