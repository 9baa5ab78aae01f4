/* SPDX-License-Identifier: MIT */
#include "preload/unwind/unwind.h"

#include <string.h>

#include "preload/unwind/unwind_state.h"
#include "preload/unwind/walk_fast.h"

/* The arrays of an unwinder: room for as many frames as its thread's stack ever had. */

static size_t unwind_arrays_size(size_t capacity)
{
    return capacity * (sizeof(uintptr_t) + sizeof(struct known_frame) + sizeof(struct new_frame) +
                       (1 + UNWIND_FRAME_CHECKS) * sizeof(struct check));
}

static size_t unwind_unwind_pages(size_t size)
{
    return (size + UNWIND_PAGE - 1) & ~(size_t)(UNWIND_PAGE - 1);
}

static void unwind_use_arrays(struct unwinder *unwinder, void *memory, uint32_t capacity)
{
    unwinder->capacity = capacity;
    unwinder->check_max = UNWIND_FRAME_CHECKS * capacity;
    unwinder->checks = memory;
    unwinder->arrivals = unwinder->checks + unwinder->check_max;
    unwinder->frames = (struct known_frame *)(unwinder->arrivals + capacity);
    unwinder->new_frames = (struct new_frame *)(unwinder->frames + capacity);
    unwinder->pcs = (uintptr_t *)(unwinder->new_frames + capacity);
}

size_t unwinder_size(void)
{
    return unwind_unwind_pages(sizeof(struct unwinder) + unwind_arrays_size(UNWIND_FIRST_FRAMES));
}

void unwinder_init(struct unwinder *unwinder, uintptr_t low, uintptr_t high, bool grows)
{
    unwinder->low = low & ~(uintptr_t)7;
    unwinder->high = high & ~(uintptr_t)7;
    unwinder->can_grow = grows;
    unwinder->wants_whole = true;
    unwinder->depth = 0;
    unwinder->meetable = 0;
    unwinder->check_count = 0;
    if (unwinder->capacity == 0)
        unwind_use_arrays(unwinder, unwinder->first_arrays, UNWIND_FIRST_FRAMES);
}

bool unwinder_grow(struct unwinder *unwinder)
{
    uint32_t capacity = unwinder->capacity;
    size_t size = unwind_unwind_pages(unwind_arrays_size((size_t)capacity * 4));
    void *memory = capacity < UNWIND_MAX_FRAMES ? unwind_pages(size) : NULL;
    if (!memory)
        return false;
    const uintptr_t *pcs = unwinder->pcs;
    const struct known_frame *frames = unwinder->frames;
    const struct new_frame *new_frames = unwinder->new_frames;
    const struct check *arrivals = unwinder->arrivals;
    struct check *checks = unwinder->checks;
    unwind_use_arrays(unwinder, memory, capacity * 4);
    memcpy(unwinder->pcs, pcs, unwinder->depth * sizeof *pcs);
    memcpy(unwinder->frames, frames, unwinder->depth * sizeof *frames);
    memcpy(unwinder->new_frames, new_frames, capacity * sizeof *new_frames);
    memcpy(unwinder->arrivals, arrivals, unwinder->depth * sizeof *arrivals);
    memcpy(unwinder->checks, checks, unwinder->check_count * sizeof *checks);
    if (capacity > UNWIND_FIRST_FRAMES)
        unwind_pages_free(checks, unwind_unwind_pages(unwind_arrays_size(capacity)));
    return true;
}

/* The most that the main thread's stack is assumed to grow between two captures. */
#define GROWTH_MAX ((uintptr_t)64 << 20)

void unwind_setup(void (*announcer)(const struct dl_find_object *),
                  unwind_frame_finder *frame_finder)
{
    rules_setup(announcer, frame_finder);
}

void unwind_setup_forked(void)
{
    rules_setup_forked();
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
static bool unwind_is_on_own_stack(struct unwinder *unwinder, uintptr_t sp)
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
static uintptr_t unwind_changed(const struct check *check)
{
    return *(const uintptr_t *)check->addr ^ check->value;
}

/*
 * Returns how many of the words, from the first, still have the value that was read. Some may lie
 * below the stack pointer by now. That is harmless: they belong to the thread's stack, and no walk
 * gets to the frames that depend on them. Four at a time: see state.h.
 */
static inline uint32_t unwind_count_valid(const struct check *first, size_t count)
{
    const struct check *check = first;
    const struct check *end = first + count;
    for (; end - check >= 4; check += 4)
        if ((unwind_changed(check) | unwind_changed(check + 1) | unwind_changed(check + 2) |
             unwind_changed(check + 3)) != 0)
            break;
    while (check < end && unwind_changed(check) == 0)
        check++;
    return (uint32_t)(check - first);
}

/* Returns how many frames of the last capture, from the outermost, a walk can meet. */
static uint32_t unwind_count_candidates(const struct unwinder *unwinder)
{
    uint32_t count = unwinder->depth < unwinder->meetable ? unwinder->depth : unwinder->meetable;
    if (count == 0)
        return 0;
    count = 1 + unwind_count_valid(unwinder->arrivals, count - 1);
    if (__builtin_expect(unwinder->frames[count - 1].first_check == 0, 1))
        return count;
    uint32_t valid = unwind_count_valid(unwinder->checks, unwinder->frames[count - 1].first_check);
    while (unwinder->frames[count - 1].first_check > valid)
        count--;
    return count;
}

/* Whether the stack differs from the last capture's at most in the innermost pc, and the step from
   that pc is the same. */
static bool unwind_is_same_frame(struct unwinder *unwinder, const struct unwind_regs *regs)
{
    if (unwinder->depth == 0 || unwinder->depth > unwinder->meetable)
        return false;
    const struct known_frame *frame = &unwinder->frames[unwinder->depth - 1];
    return frame->sp == regs->sp && (!frame->is_bp_live || frame->bp == regs->bp) &&
           frame->rule != RULE_NONE && frame->rule == walk_find_rule(unwinder, regs->pc) &&
           unwind_count_valid(unwinder->arrivals, unwinder->depth - 1) == unwinder->depth - 1 &&
           (unwinder->check_count == 0 ||
            unwind_count_valid(unwinder->checks, unwinder->check_count) == unwinder->check_count);
}

/* Goes to where a walk begins. */
static inline void unwind_place_start(struct walk_place *place, const struct unwind_regs *regs,
                                      uint32_t candidates)
{
    *place = (struct walk_place){.state = *regs, .candidates = candidates};
}

/* Prepares all of a walk but its place. */
static void unwind_walk_start(struct unwinder *unwinder, struct walk *walk,
                              const struct unwind_regs *regs, bool is_own)
{
    walk->mem.own_low = is_own ? regs->sp - 8 : unwinder->low;
    walk->mem.own_high = unwinder->high;
    walk->mem.probed_low = 0;
    walk->mem.probed_high = 0;
    walk->mem.is_foreign = !is_own;
    walk->chain_links = 0;
    walk->others = NULL;
    unwinder->read_count = 0;
}

/* Walks on until one of the candidates is met or the stack ends; once more from `regs`, if the
   other registers are needed. */
static inline __attribute__((always_inline)) enum walk_end
unwind_walk_on(struct unwinder *unwinder, struct walk *walk, const struct unwind_regs *regs,
               bool is_own, uint32_t candidates)
{
    enum walk_end end = walk_stack(unwinder, walk);
    if (__builtin_expect(end == WALK_NEEDS_REGS, 0)) {
        unwind_walk_start(unwinder, walk, regs, is_own);
        unwind_place_start(&walk->place, regs, candidates);
        walk_registers(regs, &walk->mem, &unwinder->scratch);
        walk->others = &unwinder->scratch.others;
        end = walk_stack(unwinder, walk);
        walk->others = NULL;
    }
    return end;
}

/* Returns how many frames of the last capture, from the outermost, a whole walk found again. */
static uint32_t unwind_count_common(const struct unwinder *unwinder, const struct walk *walk)
{
    uint32_t count = walk->place.new_count;
    uint32_t max = count < unwinder->depth ? count : unwinder->depth;
    uint32_t common = 0;
    while (common < max &&
           unwinder->pcs[common] == unwinder->new_frames[count - 1 - common].state.pc)
        common++;
    return common;
}

/* Walks on from the place that common steps have led to. Else as capture(). */
static __attribute__((noinline)) uint32_t capture_on(struct unwinder *unwinder,
                                                     const struct unwind_regs *regs, bool is_own,
                                                     uint32_t candidates)
{
    struct walk *walk = &unwinder->walk;
    unwind_walk_start(unwinder, walk, regs, is_own);
    enum walk_end end = unwind_walk_on(unwinder, walk, regs, is_own, candidates);
    while (end == WALK_MET && walk->place.candidates + walk->place.new_count > unwinder->capacity) {
        if (!unwinder_grow(unwinder)) {
            unwind_walk_start(unwinder, walk, regs, is_own);
            unwind_place_start(&walk->place, regs, 0);
            end = unwind_walk_on(unwinder, walk, regs, is_own, 0);
        }
    }
    bool is_checked = !walk->mem.is_foreign;
    if (end == WALK_MET) {
        unwinder_remember(unwinder, &walk->place, walk->place.candidates, is_checked, false);
        return walk->place.candidates;
    }
    unwinder->is_truncated = end == WALK_DEEP;
    if (unwinder->is_truncated)
        walk->place.new_count = unwinder->capacity / 2;
    uint32_t common = unwind_count_common(unwinder, walk);
    unwinder_remember(unwinder, &walk->place, 0, is_checked, unwinder->is_truncated);
    return common;
}

/*
 * Walks by common steps. Returns true if they lead to a candidate, and there is room to remember
 * them. Not inlined: the stack may be small, and its part of it is free again when later steps need
 * more.
 */
static __attribute__((noinline)) bool unwind_walk_fast(struct unwinder *unwinder, uintptr_t own_low)
{
    struct walk_place *place = &unwinder->walk.place;
    return take_fast_steps(unwinder, own_low, unwinder->high, place) &&
           place->candidates + place->new_count <= unwinder->capacity;
}

/* Makes the cache once the thread has walked often. A confined program has no memory to spare. */
static __attribute__((noinline)) void unwind_count_walk(struct unwinder *unwinder)
{
    if (++unwinder->walks == RULE_CACHE_WALKS && !unwind_is_confined)
        unwinder->cache = unwind_pages_used(RULE_CACHE_SIZE);
}

/* Walks the stack and remembers it. Returns how many frames, from the outermost, are as before. */
static uint32_t capture(struct unwinder *unwinder, const struct unwind_regs *regs)
{
    if (__builtin_expect(!unwinder->cache, 0))
        unwind_count_walk(unwinder);
    bool is_own = unwind_is_on_own_stack(unwinder, regs->sp);
    uint32_t candidates = is_own ? unwind_count_candidates(unwinder) : 0;
    unwind_place_start(&unwinder->walk.place, regs, candidates);
    if (__builtin_expect(candidates > 0 && unwind_walk_fast(unwinder, regs->sp - 8), 1)) {
        unwinder_remember_plain(unwinder, &unwinder->walk.place);
        return unwinder->walk.place.candidates;
    }
    return capture_on(unwinder, regs, is_own, candidates);
}

/* Drops everything that rests on changed rules. The epoch comes last: a signal handler may jump out
 * of here. False if captures are stopped. */
static bool unwind_begin_epoch(struct unwinder *unwinder, uint32_t epoch)
{
    if (is_stopped)
        return false;
    unwinder->depth = 0;
    cfi_forget(&unwinder->scratch.lookup);
    if (unwinder->cache)
        memset(unwinder->cache, 0, RULE_CACHE_SIZE);
    atomic_signal_fence(memory_order_seq_cst);
    unwinder->epoch = epoch;
    return true;
}

void unwinder_capture(struct unwinder *unwinder, const struct unwind_regs *regs,
                      struct unwind_delta *delta)
{
    uint32_t epoch = atomic_load_explicit(&rules_epoch, memory_order_acquire);
    if (__builtin_expect(unwinder->epoch != epoch, 0) && !unwind_begin_epoch(unwinder, epoch)) {
        *delta = (struct unwind_delta){.frames = unwinder->pcs};
        return;
    }
    uint32_t kept;
    if (unwind_is_same_frame(unwinder, regs)) {
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

/* Whether signal handlers return to the address. */
static bool unwind_is_signal_return(uintptr_t pc)
{
    for (int i = 0; i < WALK_SIGNAL_RETURNS; i++)
        if (atomic_load_explicit(&walk_signal_returns[i], memory_order_relaxed) == pc)
            return true;
    return false;
}

bool unwinder_is_in_handler(const struct unwinder *unwinder, uintptr_t sp)
{
    for (uint32_t i = unwinder->depth; i-- > 0 && unwinder->frames[i].sp != sp;)
        if (unwind_is_signal_return(unwinder->pcs[i]))
            return true;
    return false;
}
