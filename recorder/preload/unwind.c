/* SPDX-License-Identifier: MIT */
#include "unwind.h"

#include "unwind_state.h"

/* The most that the main thread's stack is thought to grow between two captures. */
#define GROWTH_MAX ((uintptr_t)64 << 20)

void unwind_setup(void (*found)(const struct dl_find_object *))
{
    rules_setup(found);
}

void unwind_forget(uintptr_t start, uintptr_t end)
{
    rules_forget(start, end);
}

/* Nobody wants stacks any more. */
static bool is_stopped;

void unwind_stop(void)
{
    is_stopped = true;
    atomic_fetch_add(&rules_epoch, 1); /* all captures look at it */
}

void unwinder_reset(struct unwinder *u)
{
    u->whole = true;
}

void unwinder_abandon(struct unwinder *u)
{
    u->whole = true;
    u->depth = 0;
    u->limit = 0;
    u->checks = 0;
}

/*
 * Whether the thread runs on the stack that was given at the start. Other mappings keep their
 * distance from the main thread's stack, so if everything from here to there can be read, it is
 * that stack, grown.
 */
static bool on_own_stack(struct unwinder *u, uintptr_t sp)
{
    if (__builtin_expect(sp > u->low && sp < u->high, 1))
        return true;
    if (!u->grows || sp >= u->high || sp <= UNWIND_PAGE || u->low - sp > GROWTH_MAX)
        return false;
    uintptr_t page = (sp - 8) & ~(uintptr_t)(UNWIND_PAGE - 1);
    if (!unwind_is_confined && !unwind_range_readable(page, u->low - page))
        return false;
    u->low = page;
    return true;
}

/* 0 if the word is what it was. */
static uintptr_t changed(const struct check *c)
{
    return *(const uintptr_t *)c->addr ^ c->value;
}

/*
 * How many of the checked words, from the first, still are what they were. Some may be below the
 * stack pointer by now: still the thread's stack, and harmless, since no walk gets there.
 */
static uint32_t valid_checks(const struct unwinder *u)
{
    const struct check *c = u->check;
    uint32_t i = 0;
    while (u->checks - i >= 4 &&
           (changed(&c[i]) | changed(&c[i + 1]) | changed(&c[i + 2]) | changed(&c[i + 3])) == 0)
        i += 4;
    while (i < u->checks && changed(&c[i]) == 0)
        i++;
    return i;
}

/* Whether the innermost frame is that of the last capture, but for its pc (see unwind_state.h). */
static bool same_frame(struct unwinder *u, const struct unwind_regs *regs)
{
    if (u->depth == 0 || u->depth > u->limit)
        return false;
    const struct known_frame *k = &u->frame[u->depth - 1];
    return k->sp == regs->sp && (!k->live || k->bp == regs->bp) && k->rule != RULE_NONE &&
           k->rule == rules_find(regs->pc, &u->scratch.lookup) && valid_checks(u) == u->checks;
}

/* The frames of the last capture that a walk can meet: [0, result). */
static uint32_t candidates(const struct unwinder *u)
{
    uint32_t n = u->depth < u->limit ? u->depth : u->limit;
    if (n == 0)
        return 0;
    uint32_t valid = valid_checks(u);
    while (n > 0 && u->frame[n - 1].first_check > valid)
        n--;
    return n;
}

/* The rule of a frame if its step depends on nothing else but the state. */
static unwind_rule plain_rule(const struct new_frame *f)
{
    bool plain = f->kind == NEW_FRAME_COMMON && rule_kind(f->rule) <= RULE_BP;
    return plain ? f->rule : RULE_NONE;
}

/* Whether rbp is live at a frame with this rule, if it is (or not) at the caller. */
static bool live_at(const struct new_frame *f, bool live_at_caller)
{
    if ((f->kind & NEW_FRAME_SLOW) == 0 && rule_kind(f->rule) == RULE_SP)
        return rule_bp(f->rule) == 0 && live_at_caller;
    return rule_kind(f->rule) != RULE_END;
}

/* The words read in an unusual step, added to `next`. Returns the end of what was added. */
static __attribute__((noinline)) struct check *
add_unusual_checks(struct unwinder *u, struct check *next, const struct new_frame *f, uintptr_t pc,
                   uintptr_t sp, uintptr_t bp, bool live)
{
    if ((f->kind & NEW_FRAME_SLOW) != 0) {
        for (uint32_t i = 0; i < f->reads; i++) {
            const struct step_read *r = &u->read[f->first_read + i];
            *next++ = (struct check){r->addr, r->value};
        }
        return next;
    }
    switch (rule_kind(f->rule)) {
    case RULE_DRAP:
        *next++ = (struct check){f->bp + rule_offset(f->rule), sp};
        *next++ = (struct check){sp - 8, pc};
        if (live)
            *next++ = (struct check){f->bp, bp};
        return next;
    case RULE_NO_CFI:
    case RULE_STRAY:
        *next++ = (struct check){sp - 8, pc};
        *next++ = (struct check){sp - 16, bp};
        return next;
    default:
        return next;
    }
}

/* The words read in the step from `f` to its caller, which is in state (pc, sp, bp). Returns the
   end of what was added to `next`. */
static inline struct check *add_checks(struct unwinder *u, struct check *next,
                                       const struct new_frame *f, uintptr_t pc, uintptr_t sp,
                                       uintptr_t bp, bool live)
{
    if (next + UNWIND_STEP_READS > u->check + u->checks_max) {
        u->limit = 0; /* what is met must be checked */
        return next;
    }
    if (__builtin_expect(f->kind == NEW_FRAME_COMMON && rule_kind(f->rule) <= RULE_BP, 1)) {
        *next++ = (struct check){sp - 8, pc};
        if (live && rule_bp(f->rule) != 0)
            *next++ = (struct check){sp - rule_bp(f->rule), bp};
        return next;
    }
    return add_unusual_checks(u, next, f, pc, sp, bp, live);
}

/* Puts the frames found by `w` on top of frame[0 .. base); the last of these was met. */
static void place(struct unwinder *u, const struct walk *w, uint32_t base, bool live)
{
    bool check = !w->mem.foreign;
    uint32_t n = w->found;
    struct check *next = u->check;
    u->limit = check ? UINT32_MAX : base;
    if (base > 0) {
        struct known_frame *k = &u->frame[base - 1];
        next += k->first_check;
        live = k->live;
        k->bp = w->bp;
        if (n > 0 && check)
            next = add_checks(u, next, &u->found[n - 1], w->pc, w->sp, w->bp, live);
    }
    u->depth = base + n;
    for (uint32_t k = base; n > 0; k++) {
        const struct new_frame *f = &u->found[--n];
        live = live_at(f, live);
        u->pc[k] = f->pc;
        u->frame[k] =
            (struct known_frame){f->sp, f->bp, plain_rule(f), (uint32_t)(next - u->check), live};
        if ((f->kind & NEW_FRAME_ODD) != 0 && k < u->limit)
            u->limit = k;
        if (n > 0 && check)
            next = add_checks(u, next, &u->found[n - 1], f->pc, f->sp, f->bp, live);
    }
    u->checks = (uint32_t)(next - u->check);
}

static void walk_start(struct unwinder *u, struct walk *w, const struct unwind_regs *regs, bool own)
{
    w->mem.own_low = own ? regs->sp - 8 : u->low;
    w->mem.own_high = u->high;
    w->mem.ok_low = 0;
    w->mem.ok_high = 0;
    w->mem.foreign = !own;
    w->pc = regs->pc;
    w->sp = regs->sp;
    w->bp = regs->bp;
    w->found = 0;
    w->links = 0;
    w->others = NULL;
    u->reads = 0;
}

/* Walks from `regs` until a frame below `can_meet` is met or the stack ends. */
static enum walk_end walk_from(struct unwinder *u, struct walk *w, const struct unwind_regs *regs,
                               bool own, uint32_t can_meet)
{
    walk_start(u, w, regs, own);
    w->candidates = can_meet;
    enum walk_end end = walk_stack(u, w);
    if (__builtin_expect(end == WALK_NEEDS_REGS, 0)) {
        walk_start(u, w, regs, own);
        w->candidates = can_meet;
        walk_registers(regs, &w->mem, &u->scratch);
        w->others = &u->scratch.others;
        end = walk_stack(u, w);
        w->others = NULL;
    }
    return end;
}

/* How many frames of the last capture, from the outermost, the walk found again. */
static uint32_t common(const struct unwinder *u, const struct walk *w)
{
    uint32_t n = w->found < u->depth ? w->found : u->depth;
    uint32_t k = 0;
    while (k < n && u->pc[k] == u->found[w->found - 1 - k].pc)
        k++;
    return k;
}

/* Walks the stack and remembers it. Returns how many frames, from the outermost, are as before. */
static uint32_t capture(struct unwinder *u, const struct unwind_regs *regs)
{
    struct walk *w = &u->walk;
    bool own = on_own_stack(u, regs->sp);
    enum walk_end end = walk_from(u, w, regs, own, own ? candidates(u) : 0);
    while (end == WALK_MET && w->candidates + w->found > u->capacity)
        if (!unwinder_grow(u))
            end = walk_from(u, w, regs, own, 0);
    if (__builtin_expect(end == WALK_MET, 1)) {
        place(u, w, w->candidates, false);
        return w->candidates;
    }
    u->truncated = end == WALK_DEEP;
    if (u->truncated)
        w->found = u->capacity / 2;
    uint32_t kept = common(u, w);
    place(u, w, 0, u->truncated);
    return kept;
}

void unwinder_capture(struct unwinder *u, const struct unwind_regs *regs,
                      struct unwind_delta *delta)
{
    uint32_t epoch = atomic_load_explicit(&rules_epoch, memory_order_acquire);
    uint32_t kept;
    rules_prefetch(regs->pc);
    if (__builtin_expect(u->epoch != epoch, 0)) {
        if (is_stopped) {
            *delta = (struct unwind_delta){.frames = u->pc};
            return;
        }
        u->epoch = epoch;
        u->depth = 0;
        cfi_forget(&u->scratch.lookup);
    }
    if (same_frame(u, regs)) {
        uint32_t top = u->depth - 1;
        kept = u->pc[top] == regs->pc ? u->depth : top;
        u->pc[top] = regs->pc;
        u->frame[top].bp = regs->bp;
    } else {
        kept = capture(u, regs);
    }
    delta->kept = u->whole ? 0 : kept;
    delta->added = u->depth - delta->kept;
    delta->frames = u->pc;
    delta->truncated = u->truncated;
    u->whole = false;
}

bool unwinder_finds(const struct unwinder *u, uintptr_t sp, uintptr_t *inner)
{
    for (uint32_t k = 0; k < u->depth; k++) {
        if (u->frame[k].sp == sp) {
            *inner = k + 1 < u->depth ? u->pc[k + 1] : 0;
            return true;
        }
    }
    *inner = 0;
    bool passed = u->depth > 0 && u->frame[0].sp > sp && u->frame[0].sp < u->high;
    return u->truncated || !passed;
}
