/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_PRELOAD_UNWIND_UNWIND_STATE_H
#define RECORDER_PRELOAD_UNWIND_UNWIND_STATE_H

/*
 * The state of an unwinder, and why it may keep most of the last stack.
 *
 * A walk is a chain of states. The state at a frame is (pc, sp, rbp): the return address into the
 * frame, the stack pointer there (the CFA of the next inner frame), and rbp. A step makes the state
 * of the caller. Its result depends on the state, on the rule for pc and on words of the stack, and
 * on nothing else. So, if a walk arrives at the very state that the last walk had at frame k, and
 * every word that the last walk read from frame k outwards still has the same value, then this walk
 * would go on exactly as the last one did. It stops at k: it *meets* that frame. Words between are
 * irrelevant: equal return addresses in equal slots are no evidence, equal states and words are a
 * proof.
 *
 *     outermost                                                       innermost
 *     frames[0]   frames[1]   ...   frames[k]     | frames[k + 1] ... of the last capture
 *         |           |                 |         |
 *     arrivals[0] ..  words read by     .. [k]     \ new_frames, innermost first,
 *     checks[0 ..     the steps            first_    of this walk
 *                     outwards             check
 *
 * A step reads the caller's pc, and rarely anything else that counts. arrivals[k] is the word that
 * the pc of frames[k] was read from, with its value; `checks` holds all other words, outermost
 * first. The steps from frames[k] outwards depend on arrivals[0 .. k) and on the first
 * frames[k].first_check of the checks. A capture compares words in order up to the first that
 * changed; the frames whose steps outwards read only words before it are the candidates that a walk
 * can meet.
 *
 * Three refinements:
 * - rbp is mostly a register like others. It is *live* at a frame if a frame further out uses it
 *   before it is loaded from the stack. Where it is not live, rbp is not part of the state, and the
 *   words that it was loaded from are not checked.
 * - The words on a walk's way to frame k matter to the frames inside of k. If this
 *   walk came by other words than the last one (its inner frame saved rbp elsewhere), its words
 *   replace them, although frame k is kept.
 * - A frame whose rule uses another register than rsp and rbp (NEW_FRAME_ODD) would need that
 *   register in the state. Neither it nor a frame inside of it is ever met: `meetable` excludes
 *   them.
 *
 * A capture that read other memory than the thread's own stack leaves nothing to be met. Rules
 * change only with the epoch; a change of it discards everything. One thing is assumed: where code
 * without information ended the stack, it ends it again in the same state.
 *
 * The gain of each trick: the instructions of a capture without it, divided by those with it,
 * counted by `bench/unwind.py --build build`. The names are its workloads'.
 *
 *   Frames of the last capture are met: python 6.7, stress 5.8, perl 1.8.
 *   No walk where the innermost frame differs at most in its pc, and the rule for the new pc is
 * that for the old one (is_same_frame): stress 3.7, python 1.05. rbp is part of the state only
 * where it is live: stress 2.6, python 1.26. Rules are compiled to one word each and kept in a
 * table (rules.h): perl 11, python 9. Common steps have a loop of their own that keeps the state in
 * registers (take_fast_steps): perl 1.19, python 1.11. Words are compared four at a time
 * (count_valid): python 1.09 (31 frames); stress 0.89 (3 frames). Frames realigned by gcc have a
 * kind of rule (RULE_DRAP): realigned 2.9. Rules say where other registers are saved (rule_other):
 * registers 1.45. A chain of frame pointers is verified once, not at each link (chain_links):
 * unknown 4.9. Readable pages are remembered during a capture (probed_low, probed_high): elsewhere
 * makes one system call per capture instead of 23 (strace -c).
 *
 * By samples instead of instructions: walks of clang++ take 1.25 times as long without the rules
 * that the thread has used last (walk_find_rule).
 */

#include "preload/unwind/unwind.h"
#include "preload/unwind/rules.h"
#include "dwarf/expr.h"
#include "dwarf/step.h"
#include "preload/system/own_memory.h"

/** Frames that an unwinder has room for at first; then four times as many, and again. */
#define UNWIND_FIRST_FRAMES 64u

/** Checks that there is room for, per frame, beside its arrival. */
#define UNWIND_FRAME_CHECKS 3u

/** Words that the general steps of one walk may read. */
#define UNWIND_MAX_READS 256u

/** The rules that a thread has used last, in memory of its own: a bucket for each value of a hash.
 * The table of all rules is larger than a processor's cache, and each of its lines has few that are
 * used. Only a thread that walks often gets this memory. */
#define RULE_CACHE_BITS 10
#ifndef RULE_CACHE_WALKS
#define RULE_CACHE_WALKS 16384u
#endif
#define RULE_CACHE_SIZE (sizeof(struct cached_rule) << RULE_CACHE_BITS)

struct cached_rule {
    uintptr_t pc;     /* 0: none */
    unwind_rule rule; /* by rsp or rbp: others depend on more than the epoch */
};

/** The return addresses of signal handlers: one of the C library, and fatal_return(). 0 until a
 * walk has met them. */
enum { WALK_SIGNAL_RETURNS = 2 };
extern _Atomic uintptr_t walk_signal_returns[WALK_SIGNAL_RETURNS];

/** A frame of the last capture. Its return address is in unwinder.pcs. */
struct known_frame {
    uintptr_t sp;
    uintptr_t bp;
    unwind_rule rule;     /* RULE_NONE unless the step depends on nothing but the state */
    uint32_t first_check; /* the checks before it belong to the steps from here outwards */
    bool is_bp_live;
};

/** A word of the stack that a step has read. */
struct check {
    uintptr_t addr;
    uintptr_t value;
};

enum {
    NEW_FRAME_FAST = 0,    /* or some of: */
    NEW_FRAME_GENERAL = 1, /* the step from it was made by unwind_step() */
    NEW_FRAME_ODD = 2,     /* the step needs another register than rsp and rbp */
};

/** A frame of the walk under way. */
struct new_frame {
    struct unwind_regs state;
    unwind_rule rule;
    uint32_t kind;
    uint32_t
        first_read; /* in unwinder.reads: the words that a general step has read; else not set */
    uint32_t read_count;
};

/** The state of a walk, and the candidates that it may meet. */
struct walk_place {
    struct unwind_regs state;
    uint32_t new_count;  /* of unwinder.new_frames */
    uint32_t candidates; /* frames[0 .. candidates) can be met */
};

struct walk {
    struct unwind_mem mem;
    struct walk_place place;
    unsigned chain_links;     /* frame pointers ahead that are known to lead to known code */
    struct step_regs *others; /* the other registers, or NULL if they are not followed */
};

struct unwinder {
    uintptr_t low; /* of the thread's stack */
    uintptr_t high;
    bool can_grow;    /* `low` is lowered as the stack grows */
    bool wants_whole; /* the next delta must be the whole stack */
    bool is_truncated;
    uint32_t epoch;
    uint32_t depth;    /* frames of the last capture */
    uint32_t meetable; /* only frames[0 .. meetable) can be met */
    uint32_t check_count;
    uint32_t read_count;
    uint32_t capacity; /* of pcs, frames and new_frames */
    uint32_t check_max;
    uintptr_t *pcs;               /* of the last capture, outermost first */
    struct known_frame *frames;   /* likewise */
    struct check *arrivals;       /* likewise; see above */
    struct check *checks;         /* outermost first */
    struct new_frame *new_frames; /* innermost first */
    struct step_read reads[UNWIND_MAX_READS];
    struct walk walk;          /* the one under way */
    struct cached_rule *cache; /* NULL before RULE_CACHE_WALKS, and where there is no memory */
    uint32_t walks;            /* so far, if there is no cache */
    struct unwind_scratch scratch;
    max_align_t first_arrays[];
};

enum walk_end {
    WALK_MET,        /* arrived at frames[candidates - 1] */
    WALK_ENDED,      /* the last new frame is the outermost one */
    WALK_DEEP,       /* there is no room for more frames, and no end */
    WALK_NEEDS_REGS, /* a rule needs registers that are not followed */
    WALK_GOES_ON,    /* of a step: walk->state is the caller's */
};

#pragma GCC visibility push(hidden)

/** Makes room for more frames; keeps the known and the new ones. False if there are already
   UNWIND_MAX_FRAMES, or no memory. */
bool unwinder_grow(struct unwinder *unwinder);

/**
 * Makes the new frames of a walk, on top of frames[0 .. kept), the last capture. If `kept` is not
 * 0, frames[kept - 1] is the one that the walk met. Else `is_live` says whether rbp is to be taken
 * for live at the caller of the outermost frame. `is_checked` is false if other memory than the
 * thread's own stack was read.
 */
void unwinder_remember(struct unwinder *unwinder, const struct walk_place *place, uint32_t kept,
                       bool is_checked, bool is_live);

/** Like unwinder_remember(), for a walk that has met a candidate by common steps only. */
void unwinder_remember_plain(struct unwinder *unwinder, const struct walk_place *place);

/** Walks until a candidate is met or the stack ends. If walk->others is set, it must hold the
   callee-saved registers of the first frame. */
enum walk_end walk_stack(struct unwinder *unwinder, struct walk *walk);

/** Takes one step from `frame`, whose state is the walk's. Notes in `frame` the dependencies of the
 * step. Returns WALK_GOES_ON, WALK_ENDED or WALK_NEEDS_REGS. */
enum walk_end walk_step(struct unwinder *unwinder, struct walk *walk, struct new_frame *frame);

/** Finds the callee-saved registers of the frame `start` by unwinding this library itself, and
   sets scratch->others. Registers that cannot be found are not `known`. */
void walk_registers(const struct unwind_regs *start, const struct unwind_mem *mem,
                    struct unwind_scratch *scratch);

#pragma GCC visibility pop

#endif
