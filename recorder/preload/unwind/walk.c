/* SPDX-License-Identifier: MIT */
/* Walks a stack from the innermost frame until a frame of the last capture is met. */
#include "preload/unwind/walk_fast.h"

#include "preload/unwind/unwind.h"
#include "preload/unwind/unwind_state.h"

/* Frames of this library between walk_registers() and the hook's caller, at most. */
#define OWN_FRAMES 8

static bool meets_candidate(const struct unwinder *unwinder, struct walk *walk)
{
    struct walk_place *place = &walk->place;
    uint32_t *candidates = &place->candidates;
    while (walk_candidate_sp(unwinder->frames, *candidates) < place->state.sp)
        --*candidates; /* the walk has passed it */
    return *candidates > 0 && walk_is_state_of(&unwinder->frames[*candidates - 1],
                                               unwinder->pcs[*candidates - 1], &place->state);
}

/* Not inlined: the stack may be small, and its part of it is free again when a step needs more. */
static __attribute__((noinline)) bool meets_fast(struct unwinder *unwinder, struct walk *walk)
{
    return take_fast_steps(unwinder, walk->mem.own_low, walk->mem.own_high, &walk->place);
}

enum walk_end walk_stack(struct unwinder *unwinder, struct walk *walk)
{
    for (;;) {
        struct walk_place *place = &walk->place;
        if (!walk->others ? meets_fast(unwinder, walk) : meets_candidate(unwinder, walk))
            return WALK_MET;
        if (place->state.pc == 0)
            return WALK_ENDED;
        if (place->new_count == unwinder->capacity) {
            if (!unwinder_grow(unwinder))
                return WALK_DEEP;
            continue;
        }
        struct new_frame *frame = &unwinder->new_frames[place->new_count++];
        unwind_rule rule = rules_find(place->state.pc, &unwinder->scratch.lookup);
        *frame = (struct new_frame){.state = place->state, .rule = rule};
        enum walk_end end = walk_step(unwinder, walk, frame);
        if (end != WALK_GOES_ON)
            return end;
    }
}

__attribute__((noinline)) void walk_registers(const struct unwind_regs *start,
                                              const struct unwind_mem *mem,
                                              struct unwind_scratch *scratch)
{
    struct step_regs *regs = &scratch->own;
    struct unwind_mem own = *mem;
    step_regs_here(regs);
    scratch->others.known = 0;
    if (own.own_low <= start->sp && start->sp < own.own_high)
        own.own_low = regs->reg[CFI_RSP] < own.own_low ? regs->reg[CFI_RSP] : own.own_low;
    for (int i = 0; i < OWN_FRAMES && regs->reg[CFI_RSP] < start->sp; i++)
        if (unwind_step(regs, &own, scratch) != STEP_DONE)
            return;
    if (regs->reg[CFI_RSP] == start->sp && regs->reg[CFI_RA] == start->pc)
        scratch->others = *regs;
}

/* One step of a walk, by the kind of the frame's rule. walk.c takes the common ones itself.
 */

/* Frame pointers that are followed through unknown code, at most. */
#define LINKS_MAX 128u

/* Reads the other registers of the caller from where the rule says that they were saved. */
static bool walk_read_others(struct walk *walk, unwind_rule rule, uintptr_t cfa)
{
    struct step_regs *regs = walk->others;
    regs->known &= STEP_CALLEE_SAVED;
    for (unsigned i = 0; i < RULE_OTHER_COUNT; i++) {
        unsigned words = rule_other(rule, i);
        if (words != 0) {
            regs->known |= 1u << rule_other_regs[i];
            if (!unwind_read(&walk->mem, cfa - 8 * words, &regs->reg[rule_other_regs[i]]))
                return false;
        }
    }
    return true;
}

/* Whether the rule says of each other register where it is. */
static bool walk_rule_says_others(unwind_rule rule)
{
    for (unsigned i = 0; i < RULE_OTHER_COUNT; i++)
        if (rule_other(rule, i) == RULE_OTHER_UNSAID)
            return false;
    return true;
}

/* Keeps the words that a general step has read. Without room for them no frame can be met again. */
static void walk_note_reads(struct unwinder *unwinder, struct walk *walk, struct new_frame *frame,
                            const struct step_log *log)
{
    frame->kind |= NEW_FRAME_GENERAL;
    frame->first_read = unwinder->read_count;
    if (log->count > UNWIND_STEP_READS || log->count > UNWIND_MAX_READS - unwinder->read_count) {
        walk->mem.is_foreign = true;
        return;
    }
    frame->read_count = (uint16_t)log->count;
    for (uint32_t i = 0; i < log->count; i++)
        unwinder->reads[unwinder->read_count++] = log->reads[i];
}

_Atomic uintptr_t walk_signal_returns[WALK_SIGNAL_RETURNS];

/* Notes a return address of a signal handler. */
static void walk_note_signal_return(uintptr_t pc)
{
    for (int i = 0; i < WALK_SIGNAL_RETURNS; i++) {
        uintptr_t known = 0;
        if (atomic_compare_exchange_strong(&walk_signal_returns[i], &known, pc) || known == pc)
            return;
    }
}

/* Steps by the full rules: the frame's do not fit into a word, or other registers are followed. */
static enum walk_end walk_step_general(struct unwinder *unwinder, struct walk *walk,
                                       struct new_frame *frame)
{
    struct step_regs *regs = walk->others ? walk->others : &unwinder->scratch.state;
    const struct step_log *log = &unwinder->scratch.log;
    unwinder->scratch.state.known = STEP_STATE_REGS;
    regs->reg[CFI_RSP] = walk->place.state.sp;
    regs->reg[CFI_RBP] = walk->place.state.bp;
    regs->reg[CFI_RA] = walk->place.state.pc;
    enum step_result result = unwind_step(regs, &walk->mem, &unwinder->scratch);
    if (result == STEP_UNKNOWN && !walk->others)
        return WALK_NEEDS_REGS;
    if (result == STEP_UNKNOWN || (log->used & ~STEP_STATE_REGS) != 0)
        frame->kind |= NEW_FRAME_ODD;
    if (result != STEP_DONE)
        return WALK_ENDED;
    walk_note_reads(unwinder, walk, frame, log);
    if (log->is_signal_frame)
        walk_note_signal_return(walk->place.state.pc);
    if (regs->reg[CFI_RSP] <= walk->place.state.sp) {
        if (!log->is_signal_frame)
            return WALK_ENDED;
        walk->mem.is_foreign = true; /* from a signal stack: frames are not in the order of rsp */
    }
    step_settle_state(regs);
    walk->place.state.pc = regs->reg[CFI_RA];
    walk->place.state.sp = regs->reg[CFI_RSP];
    walk->place.state.bp = regs->reg[CFI_RBP];
    return WALK_GOES_ON;
}

/* Whether the chain of frame pointers leads to known code; sets chain_links to the links up to it.
 */
static bool walk_chain_is_sound(struct unwinder *unwinder, struct walk *walk)
{
    uintptr_t bp = walk->place.state.bp;
    uintptr_t last = walk->place.state.sp;
    for (unsigned links = 1; links <= LINKS_MAX; links++) {
        uintptr_t pc;
        uintptr_t next;
        if (bp < last || bp % 8 != 0 || !unwind_read(&walk->mem, bp, &next) ||
            !unwind_read(&walk->mem, bp + 8, &pc))
            return false;
        unsigned kind = rule_kind(rules_find(pc, &unwinder->scratch.lookup));
        if (kind != RULE_STRAY && kind != RULE_NO_CFI) {
            walk->chain_links = links;
            return true;
        }
        last = bp + 16;
        bp = next;
    }
    return false;
}

/*
 * Steps from a frame of unknown code, made by a run-time compiler or written in assembly. If rbp
 * looks like a frame pointer, it is taken for one, provided that its chain ends in known code. The
 * other registers are assumed to be unchanged, because nothing better is known.
 */
static enum walk_end walk_step_chain(struct unwinder *unwinder, struct walk *walk)
{
    if (walk->chain_links == 0 && !walk_chain_is_sound(unwinder, walk))
        return WALK_ENDED;
    uintptr_t bp = walk->place.state.bp;
    walk->chain_links--;
    walk->place.state.sp = bp + 16;
    if (!unwind_read(&walk->mem, bp + 8, &walk->place.state.pc) ||
        !unwind_read(&walk->mem, bp, &walk->place.state.bp))
        return WALK_ENDED;
    return WALK_GOES_ON;
}

/* Steps from a realigned frame; it keeps its CFA in a slot below rbp. */
static enum walk_end walk_step_drap(struct walk *walk, unwind_rule rule)
{
    uintptr_t cfa;
    uintptr_t pc;
    if (!unwind_read(&walk->mem, walk->place.state.bp + rule_offset(rule), &cfa) ||
        cfa <= walk->place.state.sp || cfa % 8 != 0 || !unwind_read(&walk->mem, cfa - 8, &pc) ||
        !unwind_read(&walk->mem, walk->place.state.bp, &walk->place.state.bp))
        return WALK_ENDED;
    walk->place.state.pc = pc;
    walk->place.state.sp = cfa;
    return WALK_GOES_ON;
}

/* Steps by rsp or rbp, on whatever stack. */
static enum walk_end walk_step_plain(struct walk *walk, unwind_rule rule)
{
    uintptr_t cfa = (rule_kind(rule) == RULE_SP ? walk->place.state.sp : walk->place.state.bp) +
                    rule_offset(rule);
    uintptr_t saved = rule_bp(rule);
    uintptr_t pc;
    /* Each frame is further out than the one before, so the walk ends whatever the stack holds. */
    if (cfa <= walk->place.state.sp || cfa % 8 != 0 || !unwind_read(&walk->mem, cfa - 8, &pc) ||
        (saved != 0 && !unwind_read(&walk->mem, cfa - saved, &walk->place.state.bp)) ||
        (walk->others && !walk_read_others(walk, rule, cfa)))
        return WALK_ENDED;
    walk->place.state.pc = pc;
    walk->place.state.sp = cfa;
    return WALK_GOES_ON;
}

enum walk_end walk_step(struct unwinder *unwinder, struct walk *walk, struct new_frame *frame)
{
    unsigned kind = rule_kind(frame->rule);
    if (walk->others && kind <= RULE_DRAP && !walk_rule_says_others(frame->rule))
        return walk_step_general(unwinder, walk, frame);
    switch (kind) {
    case RULE_SP:
    case RULE_BP:
        return walk_step_plain(walk, frame->rule);
    case RULE_GENERAL:
        return walk_step_general(unwinder, walk, frame);
    case RULE_DRAP:
        return walk->others ? walk_step_general(unwinder, walk, frame)
                            : walk_step_drap(walk, frame->rule);
    case RULE_NO_CFI:
    case RULE_STRAY:
        return walk_step_chain(unwinder, walk);
    case RULE_END:
    default:
        return WALK_ENDED;
    }
}

/* Frames of this library, of the C library and of handlers within it, at most. */
enum { SKIPPED_MAX = 64 };

/* Frames that are walked at most: more than any stack has. */
enum { LISTED_MAX = 1 << 20 };

bool unwinder_find(struct unwinder *unwinder, bool (*is_skipped)(uintptr_t address),
                   struct step_regs *regs)
{
    struct unwind_mem mem = UNWIND_MEM_PROBED;
    cfi_forget(&unwinder->scratch.lookup);
    step_regs_here(regs);
    for (int i = 0; i < SKIPPED_MAX && is_skipped(regs->reg[CFI_RA] - 1); i++)
        if (unwind_step(regs, &mem, &unwinder->scratch) != STEP_DONE)
            return false;
    return !is_skipped(regs->reg[CFI_RA] - 1);
}

/* The frames that are listed so far: those up to the gap, and a ring of the last ones. */
struct listed {
    struct stack_list *list;
    uint64_t count;   /* of all frames */
    uint64_t gap_cfa; /* of the last frame that is left out */
};

static uint32_t list_ring_begin(const struct stack_list *list)
{
    return list->max - list->outermost;
}

static void list_add(struct listed *listed, uint64_t pc, uint64_t cfa)
{
    const struct stack_list *list = listed->list;
    uint64_t at = listed->count++;
    if (at >= list->max) {
        at = list_ring_begin(list) + (at - list_ring_begin(list)) % list->outermost;
        listed->gap_cfa = list->cfas[at];
    }
    list->pcs[at] = pc;
    list->cfas[at] = cfa;
}

static void list_swap(uint64_t *items, uint32_t begin, uint32_t end)
{
    for (; begin + 1 < end; begin++, end--) {
        uint64_t item = items[begin];
        items[begin] = items[end - 1];
        items[end - 1] = item;
    }
}

/* Puts the items of the ring in order; the oldest one is at `oldest`. */
static void list_unroll(uint64_t *ring, uint32_t size, uint32_t oldest)
{
    list_swap(ring, 0, oldest);
    list_swap(ring, oldest, size);
    list_swap(ring, 0, size);
}

/* Completes the list. Returns how many entries it has. */
static uint32_t list_end(struct listed *listed)
{
    struct stack_list *list = listed->list;
    uint32_t ring = list_ring_begin(list);
    if (listed->count <= list->max)
        return (uint32_t)listed->count;
    uint32_t oldest = (uint32_t)((listed->count - ring) % list->outermost);
    list_unroll(list->pcs + ring, list->outermost, oldest);
    list_unroll(list->cfas + ring, list->outermost, oldest);
    list->gap = ring - 1;
    list->left_out = listed->count - list->max + 1;
    list->cfas[ring - 1] = listed->gap_cfa;
    return list->max;
}

uint32_t unwinder_list(struct unwinder *unwinder, const struct step_regs *regs,
                       struct stack_list *list)
{
    struct walk *walk = &unwinder->walk;
    struct listed listed = {.list = list};
    enum walk_end end;
    cfi_forget(&unwinder->scratch.lookup);
    unwinder->scratch.others = *regs;
    *walk = (struct walk){
        .mem = UNWIND_MEM_PROBED,
        .place.state = {regs->reg[CFI_RA], regs->reg[CFI_RSP], regs->reg[CFI_RBP]},
        .others = &unwinder->scratch.others,
    };
    do { /* as many frames as there is room for, then the next ones */
        unwinder->read_count = 0;
        walk->place.new_count = 0;
        end = walk_stack(unwinder, walk);
        uint32_t count = walk->place.new_count;
        for (uint32_t i = 0; i < count; i++) {
            const struct unwind_regs *state = &unwinder->new_frames[i].state;
            uintptr_t next =
                i + 1 == count ? walk->place.state.sp : unwinder->new_frames[i + 1].state.sp;
            list_add(&listed, state->pc, next != state->sp ? next : 0);
        }
    } while (end == WALK_DEEP && listed.count < LISTED_MAX);
    return list_end(&listed);
}
