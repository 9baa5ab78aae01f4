/* SPDX-License-Identifier: MIT */
#include "unwind.h"

#include "state.h"

/* The most that the main thread's stack is assumed to grow between two captures. */
#define GROWTH_MAX ((uintptr_t)64 << 20)

void unwind_setup(void (*announcer)(const struct dl_find_object *))
{
    rules_setup(announcer);
}

void unwind_forget(uintptr_t start, uintptr_t end)
{
    rules_forget(start, end);
}

static bool is_stopped;

void unwind_stop(void)
{
    is_stopped = true;
    atomic_fetch_add(&rules_epoch,
                     1); /* every capture compares it, and sees is_stopped only then */
}

void unwinder_reset(struct unwinder *unwinder)
{
    unwinder->wants_whole = true;
}

void unwinder_abandon(struct unwinder *unwinder)
{
    unwinder->wants_whole = true;
    unwinder->depth = 0;
    unwinder->meetable = 0;
    unwinder->check_count = 0;
}

/*
 * Whether the thread runs on the stack that was given at the start. The kernel keeps other mappings
 * away from the main thread's stack, so if everything between that stack and `sp` is readable, it
 * is the same stack, grown.
 */
static bool is_on_own_stack(struct unwinder *unwinder, uintptr_t sp)
{
    if (__builtin_expect(sp > unwinder->low && sp < unwinder->high, 1))
        return true;
    if (!unwinder->can_grow || sp >= unwinder->high || sp <= UNWIND_PAGE ||
        unwinder->low - sp > GROWTH_MAX)
        return false;
    uintptr_t page = (sp - 8) & ~(uintptr_t)(UNWIND_PAGE - 1);
    if (!unwind_is_confined && !unwind_range_readable(page, unwinder->low - page))
        return false;
    unwinder->low = page;
    return true;
}

/* Returns 0 if the word still has the value that was read. */
static uintptr_t changed(const struct check *check)
{
    return *(const uintptr_t *)check->addr ^ check->value;
}

/*
 * Returns how many of the checked words, from the first, still have the value that was read. Some
 * may lie below the stack pointer by now. That is harmless: they belong to the thread's stack, and
 * no walk gets to the frames that depend on them. Four at a time: see state.h.
 */
static uint32_t valid_checks(const struct unwinder *unwinder)
{
    const struct check *check = unwinder->checks;
    uint32_t i = 0;
    while (unwinder->check_count - i >= 4 && (changed(&check[i]) | changed(&check[i + 1]) |
                                              changed(&check[i + 2]) | changed(&check[i + 3])) == 0)
        i += 4;
    while (i < unwinder->check_count && changed(&check[i]) == 0)
        i++;
    return i;
}

/* Whether the stack differs from the last capture's at most in the innermost pc, and the step from
   that pc is the same. */
static bool is_same_frame(struct unwinder *unwinder, const struct unwind_regs *regs)
{
    if (unwinder->depth == 0 || unwinder->depth > unwinder->meetable)
        return false;
    const struct known_frame *frame = &unwinder->frames[unwinder->depth - 1];
    return frame->sp == regs->sp && (!frame->is_bp_live || frame->bp == regs->bp) &&
           frame->rule != RULE_NONE &&
           frame->rule == rules_find(regs->pc, &unwinder->scratch.lookup) &&
           valid_checks(unwinder) == unwinder->check_count;
}

/* Returns how many frames of the last capture, from the outermost, a walk can meet. */
static uint32_t count_candidates(const struct unwinder *unwinder)
{
    uint32_t count = unwinder->depth < unwinder->meetable ? unwinder->depth : unwinder->meetable;
    if (count == 0)
        return 0;
    uint32_t valid = valid_checks(unwinder);
    while (count > 0 && unwinder->frames[count - 1].first_check > valid)
        count--;
    return count;
}

static void walk_start(struct unwinder *unwinder, struct walk *walk, const struct unwind_regs *regs,
                       bool is_own, uint32_t candidates)
{
    walk->mem.own_low = is_own ? regs->sp - 8 : unwinder->low;
    walk->mem.own_high = unwinder->high;
    walk->mem.probed_low = 0;
    walk->mem.probed_high = 0;
    walk->mem.is_foreign = !is_own;
    walk->state = *regs;
    walk->new_count = 0;
    walk->candidates = candidates;
    walk->chain_links = 0;
    walk->others = NULL;
    unwinder->read_count = 0;
}

/* Walks from `regs` until one of the candidates is met or the stack ends. */
static enum walk_end walk_from(struct unwinder *unwinder, struct walk *walk,
                               const struct unwind_regs *regs, bool is_own, uint32_t candidates)
{
    walk_start(unwinder, walk, regs, is_own, candidates);
    enum walk_end end = walk_stack(unwinder, walk);
    if (__builtin_expect(end == WALK_NEEDS_REGS, 0)) {
        walk_start(unwinder, walk, regs, is_own, candidates);
        walk_registers(regs, &walk->mem, &unwinder->scratch);
        walk->others = &unwinder->scratch.others;
        end = walk_stack(unwinder, walk);
        walk->others = NULL;
    }
    return end;
}

/* Returns how many frames of the last capture, from the outermost, a whole walk found again. */
static uint32_t count_common(const struct unwinder *unwinder, const struct walk *walk)
{
    uint32_t max = walk->new_count < unwinder->depth ? walk->new_count : unwinder->depth;
    uint32_t common = 0;
    while (common < max &&
           unwinder->pcs[common] == unwinder->new_frames[walk->new_count - 1 - common].state.pc)
        common++;
    return common;
}

/* Walks the stack and remembers it. Returns how many frames, from the outermost, are as before. */
static uint32_t capture(struct unwinder *unwinder, const struct unwind_regs *regs)
{
    struct walk *walk = &unwinder->walk;
    bool is_own = is_on_own_stack(unwinder, regs->sp);
    uint32_t candidates = is_own ? count_candidates(unwinder) : 0;
    enum walk_end end = walk_from(unwinder, walk, regs, is_own, candidates);
    while (end == WALK_MET && walk->candidates + walk->new_count > unwinder->capacity)
        if (!unwinder_grow(unwinder))
            end = walk_from(unwinder, walk, regs, is_own, 0);
    if (__builtin_expect(end == WALK_MET, 1)) {
        unwinder_remember(unwinder, walk, walk->candidates, false);
        return walk->candidates;
    }
    unwinder->is_truncated = end == WALK_DEEP;
    if (unwinder->is_truncated)
        walk->new_count = unwinder->capacity / 2;
    uint32_t common = count_common(unwinder, walk);
    unwinder_remember(unwinder, walk, 0, unwinder->is_truncated);
    return common;
}

/* Drops what rests on rules that have changed. False if captures are stopped. */
static bool begin_epoch(struct unwinder *unwinder, uint32_t epoch)
{
    if (is_stopped)
        return false;
    unwinder->epoch = epoch;
    unwinder->depth = 0;
    cfi_forget(&unwinder->scratch.lookup);
    return true;
}

void unwinder_capture(struct unwinder *unwinder, const struct unwind_regs *regs,
                      struct unwind_delta *delta)
{
    uint32_t epoch = atomic_load_explicit(&rules_epoch, memory_order_acquire);
    if (__builtin_expect(unwinder->epoch != epoch, 0) && !begin_epoch(unwinder, epoch)) {
        *delta = (struct unwind_delta){.frames = unwinder->pcs};
        return;
    }
    uint32_t kept;
    if (is_same_frame(unwinder, regs)) {
        uint32_t innermost = unwinder->depth - 1;
        kept = unwinder->pcs[innermost] == regs->pc ? unwinder->depth : innermost;
        unwinder->pcs[innermost] = regs->pc;
        unwinder->frames[innermost].bp = regs->bp;
    } else {
        kept = capture(unwinder, regs);
    }
    delta->kept = unwinder->wants_whole ? 0 : kept;
    delta->added = unwinder->depth - delta->kept;
    delta->frames = unwinder->pcs;
    delta->truncated = unwinder->is_truncated;
    unwinder->wants_whole = false;
}

bool unwinder_finds(const struct unwinder *unwinder, uintptr_t sp, uintptr_t *inner)
{
    const struct known_frame *frames = unwinder->frames;
    for (uint32_t i = 0; i < unwinder->depth; i++) {
        if (frames[i].sp == sp) {
            *inner = i + 1 < unwinder->depth ? unwinder->pcs[i + 1] : 0;
            return true;
        }
    }
    *inner = 0;
    bool is_passed = unwinder->depth > 0 && frames[0].sp > sp && frames[0].sp < unwinder->high;
    return unwinder->is_truncated || !is_passed;
}
