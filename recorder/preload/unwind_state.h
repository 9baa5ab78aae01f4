/* SPDX-License-Identifier: MIT */
#ifndef TTD_PRELOAD_UNWIND_STATE_H
#define TTD_PRELOAD_UNWIND_STATE_H

/*
 * What an unwinder remembers, and why it may trust it.
 *
 * A walk is a chain of states. The state at a frame is (pc, sp, rbp): the return address into the
 * frame, the stack pointer there (the CFA of the next inner frame), and rbp. A step, which makes
 * the state of the caller, depends on the state, on the rule for pc, and on words of the stack: on
 * nothing else. So, if a walk arrives at the very state that the last walk had at some frame k, and
 * every word that the last walk read to get from frame k to the outermost frame still holds the
 * same value, then this walk would go on exactly as the last one did, and may stop at k. It does
 * not matter what happened to the words in between: equal addresses in equal slots are no
 * evidence in themselves, equal states and words are a proof.
 *
 * Hence `check`: all words read, outermost first, with the values found. frame[k].first_check
 * counts those that the steps from frame k outwards depend on. A capture compares the words in
 * order up to the first difference; then the frames whose first_check is not beyond it can be met.
 *
 * Three refinements:
 * - rbp is mostly just a register with some value. It is `live` at a frame if a frame further out
 *   uses it before it is loaded from the stack. Where it is not, rbp is not part of the state,
 *   and the words it was loaded from are not checked.
 * - The words through which a walk *arrives* at frame k matter to the frames inside of k. If this
 * walk came another way than the last one (its inner frame saved rbp in another place), they are
 *   replaced by those of this walk, although frame k is kept.
 * - Frames whose rule uses another register than rsp and rbp (`odd`) would need that register in
 *   the state. They are never met, nor are those inside of them: `limit` excludes both.
 *
 * Mostly a thread calls again from the frame that it last called from, from another pc. If the rule
 * for that pc is the rule for the last one and the rest of the state is the same, then so is the
 * step: nothing has changed but the pc, and no walk is needed.
 *
 * Captures that read other memory than the thread's own stack leave nothing to be met (limit = 0).
 * Rules change only with the epoch, which discards everything. One thing is taken on trust: where
 * code without information ended the stack, it is assumed to do so again in the same state.
 */

#include "unwind.h"
#include "unwind_rules.h"
#include "unwind_scratch.h"
#include "unwind_step.h"

/* Frames that an unwinder has room for at first; then four times as many, and again. */
#define UNWIND_FIRST_FRAMES 64u
#define UNWIND_FRAME_CHECKS 4u
#define UNWIND_MAX_READS    256u

/* A frame of the last capture. Its return address is in unwinder.pc. */
struct known_frame {
    uintptr_t sp;
    uintptr_t bp;
    unwind_rule rule; /* RULE_NONE unless of kind RULE_SP or RULE_BP */
    uint32_t first_check;
    bool live;
};

struct check {
    uintptr_t addr;
    uintptr_t value;
};

enum {
    NEW_FRAME_COMMON = 0, /* or some of: */
    NEW_FRAME_SLOW = 1,   /* the step from it was made by unwind_step */
    NEW_FRAME_ODD = 2,    /* it needs another register than rsp and rbp */
};

/* A frame of the walk under way, innermost first. */
struct new_frame {
    uintptr_t pc;
    uintptr_t sp;
    uintptr_t bp;
    unwind_rule rule;
    uint32_t kind;
    uint32_t first_read; /* of a slow step to the caller, in unwinder.read; else not set */
    uint32_t reads;
};

/* A walk: where it is, and what it may meet. */
struct walk {
    struct unwind_mem mem;
    uintptr_t pc;
    uintptr_t sp;
    uintptr_t bp;
    uint32_t found;           /* in unwinder.found */
    uint32_t candidates;      /* frame[0 .. candidates) can be met */
    unsigned links;           /* of a chain of frame pointers, already known to lead somewhere */
    struct step_regs *others; /* the other registers, or NULL if they are not followed */
};

struct unwinder {
    uintptr_t low;
    uintptr_t high;
    bool grows;
    bool whole; /* the next delta must be the whole stack */
    bool truncated;
    uint32_t epoch;
    uint32_t depth;
    uint32_t limit; /* only frames below it can be met */
    uint32_t checks;
    uint32_t reads;
    uint32_t capacity; /* of the arrays of frames */
    uint32_t checks_max;
    uintptr_t *pc;
    struct known_frame *frame;
    struct check *check;
    struct new_frame *found;
    struct step_read read[UNWIND_MAX_READS];
    struct walk walk; /* the one under way */
    struct unwind_scratch scratch;
    max_align_t first[]; /* the first arrays */
};

enum walk_end {
    WALK_MET,        /* arrived at frame[candidates - 1] */
    WALK_ENDED,      /* found the outermost frame */
    WALK_DEEP,       /* found as many frames as there can be room for, and no end */
    WALK_NEEDS_REGS, /* came to a rule for other registers */
};

#pragma GCC visibility push(hidden)

/* Makes room for more frames; keeps those that are known, and those that were found. False if there
   are UNWIND_MAX_FRAMES, or no memory. */
bool unwinder_grow(struct unwinder *u);

/* Walks until a candidate is met or the stack ends. If w->others is set, it must hold the
   callee-saved registers of the first frame. */
enum walk_end walk_stack(struct unwinder *u, struct walk *w);

/* Finds the callee-saved registers of the frame in `regs` by unwinding this library itself, and
   sets scratch->others. What cannot be found is not `known`. */
void walk_registers(const struct unwind_regs *regs, const struct unwind_mem *mem,
                    struct unwind_scratch *scratch);

#pragma GCC visibility pop

#endif
