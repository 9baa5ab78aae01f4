/* SPDX-License-Identifier: MIT */
#include "unwind_state.h"

#define STATE_REGS   (1u << CFI_RSP | 1u << CFI_RBP | 1u << CFI_RA)
#define CALLEE_SAVED (STATE_REGS | 1u << CFI_RBX | 0xf000u)
#define LINKS_MAX    128u
#define OWN_FRAMES   8

#define always_inline inline __attribute__((always_inline))

static const uint8_t other_regs[RULE_OTHER_COUNT] = {CFI_RBX, 12, 13, 14, 15};

enum progress { STEPPED, STOPPED, LACKING };

/* The other registers in the caller, by a rule that says where they are. */
static bool track(struct walk *w, unwind_rule rule, uintptr_t cfa)
{
    struct step_regs *r = w->others;
    r->known &= CALLEE_SAVED;
    for (unsigned i = 0; i < RULE_OTHER_COUNT; i++) {
        unsigned words = rule_other(rule, i);
        if (words != 0) {
            r->known |= 1u << other_regs[i];
            if (!unwind_read(&w->mem, cfa - 8 * words, &r->reg[other_regs[i]]))
                return false;
        }
    }
    return true;
}

static bool rule_says_others(unwind_rule rule)
{
    for (unsigned i = 0; i < RULE_OTHER_COUNT; i++)
        if (rule_other(rule, i) == 1)
            return false;
    return true;
}

/* Notes what the step depended on. If there is no room, the frame can never be met again. */
static void note_reads(struct unwinder *u, struct walk *w, struct new_frame *f,
                       const struct step_log *log)
{
    f->kind |= NEW_FRAME_SLOW;
    f->first_read = u->reads;
    if (log->count > UNWIND_STEP_READS || log->count > UNWIND_MAX_READS - u->reads) {
        w->mem.foreign = true;
        return;
    }
    f->reads = (uint16_t)log->count;
    for (uint32_t i = 0; i < log->count; i++)
        u->read[u->reads++] = log->read[i];
}

static enum progress step_slow(struct unwinder *u, struct walk *w, struct new_frame *f)
{
    struct step_regs *r = w->others != NULL ? w->others : &u->scratch.state;
    const struct step_log *log = &u->scratch.log;
    u->scratch.state.known = STATE_REGS;
    r->reg[CFI_RSP] = w->sp;
    r->reg[CFI_RBP] = w->bp;
    r->reg[CFI_RA] = w->pc;
    enum step_result result = unwind_step(r, &w->mem, &u->scratch);
    if (result == STEP_UNKNOWN && w->others == NULL)
        return LACKING;
    if (result == STEP_UNKNOWN || (log->used & ~STATE_REGS) != 0)
        f->kind |= NEW_FRAME_ODD;
    if (result != STEP_DONE)
        return STOPPED;
    note_reads(u, w, f, log);
    if (r->reg[CFI_RSP] <= w->sp) {
        if (!log->signal)
            return STOPPED;
        w->mem.foreign = true; /* from a handler on another stack: frames are not in order */
    }
    w->pc = r->reg[CFI_RA];
    w->sp = r->reg[CFI_RSP];
    w->bp = (r->known >> CFI_RBP & 1) != 0 ? r->reg[CFI_RBP] : 0;
    r->known |= STATE_REGS;
    return STEPPED;
}

/* Whether the chain of frame pointers leads to code that is known; counts the links to there. */
static bool chain_leads_home(struct unwinder *u, struct walk *w)
{
    uintptr_t bp = w->bp;
    uintptr_t last = w->sp;
    for (unsigned links = 1; links <= LINKS_MAX; links++) {
        uintptr_t pc;
        uintptr_t next;
        if (bp < last || bp % 8 != 0 || !unwind_read(&w->mem, bp, &next) ||
            !unwind_read(&w->mem, bp + 8, &pc))
            return false;
        unsigned kind = rule_kind(rules_find(pc, &u->scratch.lookup));
        if (kind != RULE_STRAY && kind != RULE_NO_CFI) {
            w->links = links;
            return true;
        }
        last = bp + 16;
        bp = next;
    }
    return false;
}

/*
 * Code that nothing is known of: run-time compilers and hand-written assembly. If rbp looks like a
 * frame pointer, believe it, provided that its chain comes to known code in the end. The other
 * registers are taken to be as they were, for want of anything better.
 */
static enum progress step_chain(struct unwinder *u, struct walk *w)
{
    if (w->links == 0 && !chain_leads_home(u, w))
        return STOPPED;
    uintptr_t bp = w->bp;
    w->links--;
    w->sp = bp + 16;
    if (!unwind_read(&w->mem, bp + 8, &w->pc) || !unwind_read(&w->mem, bp, &w->bp))
        return STOPPED;
    return STEPPED;
}

static enum progress step_drap(struct walk *w, unwind_rule rule)
{
    uintptr_t cfa;
    uintptr_t pc;
    if (!unwind_read(&w->mem, w->bp + rule_offset(rule), &cfa) || cfa <= w->sp || cfa % 8 != 0 ||
        !unwind_read(&w->mem, cfa - 8, &pc) || !unwind_read(&w->mem, w->bp, &w->bp))
        return STOPPED;
    w->pc = pc;
    w->sp = cfa;
    return STEPPED;
}

/* By a rule for rsp or rbp, wherever the stack may be. */
static enum progress step_common(struct walk *w, unwind_rule rule)
{
    uintptr_t cfa = (rule_kind(rule) == RULE_SP ? w->sp : w->bp) + rule_offset(rule);
    uintptr_t saved = rule_bp(rule);
    uintptr_t pc;
    /* Each frame is further out than the one before, so the walk ends whatever the stack holds. */
    if (cfa <= w->sp || cfa % 8 != 0 || !unwind_read(&w->mem, cfa - 8, &pc) ||
        (saved != 0 && !unwind_read(&w->mem, cfa - saved, &w->bp)) ||
        (w->others != NULL && !track(w, rule, cfa)))
        return STOPPED;
    w->pc = pc;
    w->sp = cfa;
    return STEPPED;
}

static enum progress step(struct unwinder *u, struct walk *w, struct new_frame *f)
{
    unsigned kind = rule_kind(f->rule);
    if (w->others != NULL && kind <= RULE_DRAP && !rule_says_others(f->rule))
        return step_slow(u, w, f);
    switch (kind) {
    case RULE_SP:
    case RULE_BP:
        return step_common(w, f->rule);
    case RULE_SLOW:
        return step_slow(u, w, f);
    case RULE_DRAP:
        return w->others != NULL ? step_slow(u, w, f) : step_drap(w, f->rule);
    case RULE_NO_CFI:
    case RULE_STRAY:
        return step_chain(u, w);
    case RULE_END:
    default:
        return STOPPED;
    }
}

/* The steps that nearly all are: by rsp or rbp, on the thread's own stack, without other registers.
   Leaves the state at the first frame that must be stepped from in another way. */
static always_inline bool quick_steps(struct unwinder *u, struct walk *w)
{
    const uintptr_t low = w->mem.own_low;
    const uintptr_t span = w->mem.own_high - 8 - low;
    uintptr_t pc = w->pc;
    uintptr_t sp = w->sp;
    uintptr_t bp = w->bp;
    uint32_t n = w->candidates;
    const struct known_frame *frame = u->frame;
    struct new_frame *f = u->found + w->found;
    const struct new_frame *end = u->found + u->capacity;
    bool arrived = false;
    while (f < end && pc != 0) {
        while (n > 0 && frame[n - 1].sp < sp)
            n--;
        if (n > 0) {
            const struct known_frame *k = &frame[n - 1];
            if (k->sp == sp && u->pc[n - 1] == pc && (!k->live || k->bp == bp)) {
                arrived = true;
                break;
            }
        }
        unwind_rule rule = rules_find(pc, &u->scratch.lookup);
        f->pc = pc;
        f->sp = sp;
        f->bp = bp;
        f->rule = rule;
        f->kind = NEW_FRAME_COMMON;
        unsigned kind = rule_kind(rule);
        uintptr_t cfa = (kind == RULE_SP ? sp : bp) + rule_offset(rule);
        uintptr_t saved = rule_bp(rule);
        if (__builtin_expect(kind > RULE_BP || cfa <= sp || cfa % 8 != 0 || cfa - 8 - low > span ||
                                 cfa - saved - low > span + 8,
                             0))
            break;
        pc = *(const uintptr_t *)(cfa - 8);
        bp = saved != 0 ? *(const uintptr_t *)(cfa - saved) : bp;
        sp = cfa;
        f++;
    }
    w->pc = pc;
    w->sp = sp;
    w->bp = bp;
    w->candidates = n;
    w->found = (uint32_t)(f - u->found);
    return arrived;
}
static bool met(const struct unwinder *u, struct walk *w)
{
    while (w->candidates > 0 && u->frame[w->candidates - 1].sp < w->sp)
        w->candidates--;
    if (w->candidates == 0)
        return false;
    const struct known_frame *k = &u->frame[w->candidates - 1];
    return k->sp == w->sp && u->pc[w->candidates - 1] == w->pc && (!k->live || k->bp == w->bp);
}

enum walk_end walk_stack(struct unwinder *u, struct walk *w)
{
    for (;;) {
        if (w->others == NULL ? quick_steps(u, w) : met(u, w))
            return WALK_MET;
        if (w->pc == 0)
            return WALK_ENDED;
        if (w->found == u->capacity) {
            if (!unwinder_grow(u))
                return WALK_DEEP;
            continue;
        }
        struct new_frame *f = &u->found[w->found++];
        unwind_rule rule = rules_find(w->pc, &u->scratch.lookup);
        *f = (struct new_frame){.pc = w->pc, .sp = w->sp, .bp = w->bp, .rule = rule};
        enum progress progress = step(u, w, f);
        if (progress != STEPPED)
            return progress == LACKING ? WALK_NEEDS_REGS : WALK_ENDED;
    }
}

__attribute__((noinline)) void walk_registers(const struct unwind_regs *regs,
                                              const struct unwind_mem *mem,
                                              struct unwind_scratch *scratch)
{
    struct step_regs *others = &scratch->others;
    struct step_regs *r = &scratch->own;
    struct unwind_mem own = *mem;
    __asm__ volatile("movq %%rbx, %c[rbx](%[r])\n\t"
                     "movq %%rbp, %c[rbp](%[r])\n\t"
                     "movq %%rsp, %c[rsp](%[r])\n\t"
                     "movq %%r12, %c[r12](%[r])\n\t"
                     "movq %%r13, %c[r13](%[r])\n\t"
                     "movq %%r14, %c[r14](%[r])\n\t"
                     "movq %%r15, %c[r15](%[r])\n\t"
                     "leaq 1f(%%rip), %%rax\n"
                     "1:\tmovq %%rax, %c[ra](%[r])"
                     :
                     : [r] "r"(&r->reg[0]), [rbx] "i"(8 * CFI_RBX), [rbp] "i"(8 * CFI_RBP),
                       [rsp] "i"(8 * CFI_RSP), [r12] "i"(8 * 12), [r13] "i"(8 * 13),
                       [r14] "i"(8 * 14), [r15] "i"(8 * 15), [ra] "i"(8 * CFI_RA)
                     : "rax", "memory");
    r->known = CALLEE_SAVED;
    others->known = 0;
    if (own.own_low <= regs->sp && regs->sp < own.own_high)
        own.own_low = r->reg[CFI_RSP] < own.own_low ? r->reg[CFI_RSP] : own.own_low;
    for (int i = 0; i < OWN_FRAMES && r->reg[CFI_RSP] < regs->sp; i++)
        if (unwind_step(r, &own, scratch) != STEP_DONE)
            return;
    if (r->reg[CFI_RSP] == regs->sp && r->reg[CFI_RA] == regs->pc)
        *others = *r;
}
