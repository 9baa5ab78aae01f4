/* SPDX-License-Identifier: MIT */
#ifndef RECORDER_PRELOAD_UNWIND_RULES_H
#define RECORDER_PRELOAD_UNWIND_RULES_H

/*
 * Rules compiled from call frame information: one word per return address, in a hash table that
 * all threads share. Readers never lock and never wait.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dwarf/cfi.h"
#include "preload/unwind/unwind.h"

struct cfi_lookup;

#pragma GCC visibility push(hidden)

/**
 * How to step from a frame to its caller, whose return address is at the CFA - 8:
 *
 *   bits 0-3    kind
 *   bits 4-17   where rbp is saved, in words below the CFA; 0: it is not
 *   bits 18-37  where rbx, r12, r13, r14, r15 are, 4 bits each: 0 not saved, 1 the rule does not
 *               say, else saved that many words below the CFA
 *   bits 38-63  offset, signed
 */
typedef uint64_t unwind_rule;

enum {
    RULE_NONE = 0,    /* a table entry that is being filled, or was forgotten */
    RULE_SP = 1,      /* CFA = rsp + offset */
    RULE_BP = 2,      /* CFA = rbp + offset */
    RULE_DRAP = 3,    /* CFA = *(rbp + offset), the caller's rbp = *rbp: a realigned frame */
    RULE_END = 4,     /* the outermost frame */
    RULE_NO_CFI = 5,  /* code of a module without valid call frame information */
    RULE_STRAY = 6,   /* in no module: made at run time, or not code at all */
    RULE_GENERAL = 7, /* rules that do not fit into a word: unwind_step() */
};

#define RULE_BP_SHIFT     4
#define RULE_BP_MAX       0x3fffu
#define RULE_OTHER_SHIFT  18
#define RULE_OTHER_COUNT  5
#define RULE_OTHER_UNSAID 1u
#define RULE_OFFSET_SHIFT 38

static inline unsigned rule_kind(unwind_rule rule)
{
    return (unsigned)rule & 15;
}

static inline uintptr_t rule_offset(unwind_rule rule)
{
    return (uintptr_t)((int64_t)rule >> RULE_OFFSET_SHIFT);
}

/** Returns where rbp is saved, in bytes below the CFA; 0 if it is not. */
static inline uintptr_t rule_bp(unwind_rule rule)
{
    return (rule >> RULE_BP_SHIFT & RULE_BP_MAX) * 8;
}

/** DWARF numbers of the other registers: rbx, r12, r13, r14, r15. */
extern const uint8_t rule_other_regs[RULE_OTHER_COUNT];

/** Returns the place of the i-th of them: 0, RULE_OTHER_UNSAID, or words below the CFA. */
static inline unsigned rule_other(unwind_rule rule, unsigned i)
{
    return rule >> (RULE_OTHER_SHIFT + 4 * i) & 15;
}

struct rule_entry {
    _Atomic uintptr_t pc;
    _Atomic unwind_rule rule;
};

struct rule_table {
    unsigned shift; /* of the hash, to make it an index */
    size_t mask;
    bool is_shared; /* with forked children */
    _Atomic size_t used;
    struct rule_entry entry[];
};

/** Entries that a return address may be in, from its hash on. So many are all taken in a table that
 * is nearly full; of eight, some are in one that is a third full, and each of a server's children
 * would make a larger table for the same address. */
#define RULE_PROBES 64u

/** NULL until rules_setup(). A table is never unmapped once it was published. */
extern struct rule_table *_Atomic rules_table;

/** Changes whenever rules are forgotten. */
extern _Atomic uint32_t rules_epoch;

/** Makes the table, or empties it. The parameters are as for unwind_setup(). */
void rules_setup(void (*announcer)(const struct dl_find_object *),
                 unwind_frame_finder *frame_finder);

/** See unwind_setup_forked(). */
void rules_setup_forked(void);

/** Forgets the rules for code in [start, end), and begins a new epoch. */
void rules_forget(uintptr_t start, uintptr_t end);

/** Compiles the rule for `pc` from its module and keeps it, if there is room. `lookup` is memory
   for that. */
unwind_rule rules_make(uintptr_t pc, struct cfi_lookup *lookup);

/** Does the same as rules_find(), where the first entry that `pc` may be in does not have its rule.
 */
unwind_rule rules_find_on(struct rule_table *table, uintptr_t pc, struct cfi_lookup *lookup);

static inline size_t rules_hash(const struct rule_table *table, uintptr_t pc)
{
    return (size_t)(pc * 0x9e3779b97f4a7c15u >> table->shift);
}

/** Returns the rule for the return address `pc`. */
static inline unwind_rule rules_find(uintptr_t pc, struct cfi_lookup *lookup)
{
    struct rule_table *table = atomic_load_explicit(&rules_table, memory_order_acquire);
    if (__builtin_expect(!table, 0))
        return rules_make(pc, lookup);
    struct rule_entry *entry = &table->entry[rules_hash(table, pc)];
    if (__builtin_expect(atomic_load_explicit(&entry->pc, memory_order_relaxed) == pc, 1)) {
        unwind_rule rule = atomic_load_explicit(&entry->rule, memory_order_acquire);
        if (__builtin_expect(rule != RULE_NONE, 1))
            return rule;
    }
    return rules_find_on(table, pc, lookup);
}

#pragma GCC visibility pop

/* Makes the rule of one word for an address from its row of call frame information. */

#pragma GCC visibility push(hidden)

/** Returns the rule for the instruction at `address` inside lookup->object. RULE_NO_CFI if there is
 * no valid information for it. */
unwind_rule rule_compile(struct cfi_lookup *lookup, uintptr_t address);

#pragma GCC visibility pop

/* The modules of this process, the unwinder's own: see dwarf/cfi.h. */

#pragma GCC visibility push(hidden)

/** Finds the program headers of the program. To be called once, before frames are followed. The
   finder is as in unwind_setup(). */
void own_modules_setup(unwind_frame_finder *frame_finder);

#pragma GCC visibility pop

#endif
