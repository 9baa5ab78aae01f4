/* SPDX-License-Identifier: MIT */
#include "preload/unwind/rules.h"

#include <dlfcn.h>
#include <link.h>

#include "dwarf/cfi.h"
#include "preload/system/own_memory.h"
#include "preload/unwind/unwind_state.h"

/* Sizes of the table: powers of two. */
#define FIRST_BITS 10
#define LAST_BITS  22
#define GROW_BITS  2

/* Announced objects that are remembered. */
#define OBJECTS 512u

struct rule_table *_Atomic rules_table;
_Atomic uint32_t rules_epoch;

/*
 * The last, in the loader's list, of the modules that the program starts with. They are never
 * unloaded, so their rules hold in all forked children: a table with only such rules is shared by
 * all of them. Each of a server's children would otherwise compile the same ones.
 */
static const struct link_map *last_lasting;

static void (*_Atomic announce)(const struct dl_find_object *);
static atomic_flag growing = ATOMIC_FLAG_INIT;

/* Whether this is the child of a fork. Its siblings find the entries that it puts into the shared
 * table; they do not see a larger one in its place. */
static bool is_forked;

/* Start addresses of the announced objects; a hash table. Once it is full, further objects are
   announced each time. */
static _Atomic uintptr_t announced[OBJECTS];

static struct rule_table *rules_table_new(unsigned bits, bool is_shared)
{
    size_t size = sizeof(struct rule_table) + (sizeof(struct rule_entry) << bits);
    struct rule_table *table = is_shared ? unwind_pages_shared(size) : unwind_pages_used(size);
    if (table) {
        table->is_shared = is_shared;
        table->shift = 64 - bits;
        table->mask = ((size_t)1 << bits) - 1;
    }
    return table;
}

/* Returns the entry of `pc`, or takes a free one for it. NULL if none of its entries is free. */
static struct rule_entry *rules_table_entry(struct rule_table *table, uintptr_t pc)
{
    size_t i = rules_hash(table, pc);
    for (unsigned probe = 0; probe < RULE_PROBES; probe++) {
        struct rule_entry *entry = &table->entry[(i + probe) & table->mask];
        uintptr_t key = atomic_load_explicit(&entry->pc, memory_order_relaxed);
        if (key == 0 && atomic_compare_exchange_strong(&entry->pc, &key, pc)) {
            atomic_fetch_add_explicit(&table->used, 1, memory_order_relaxed);
            return entry;
        }
        if (key == pc)
            return entry;
    }
    return NULL;
}

/* Forgets the rules of [start, end). Keys stay, so that other keys are still found behind them. */
static void rules_table_clear(struct rule_table *table, uintptr_t start, uintptr_t end)
{
    for (size_t i = 0; i <= table->mask; i++) {
        uintptr_t pc = atomic_load_explicit(&table->entry[i].pc, memory_order_relaxed);
        if (pc >= start && pc <= end) /* a call at the very end returns to `end` */
            atomic_store(&table->entry[i].rule, RULE_NONE);
    }
}

static struct rule_table *rules_table_copy(struct rule_table *old, unsigned bits, bool is_shared)
{
    struct rule_table *table = bits <= LAST_BITS ? rules_table_new(bits, is_shared) : NULL;
    if (!table)
        return NULL;
    for (size_t i = 0; i <= old->mask; i++) {
        unwind_rule rule = atomic_load_explicit(&old->entry[i].rule, memory_order_acquire);
        if (rule == RULE_NONE)
            continue;
        struct rule_entry *entry = rules_table_entry(table, atomic_load(&old->entry[i].pc));
        if (entry)
            atomic_store_explicit(&entry->rule, rule, memory_order_relaxed);
    }
    return table;
}

/*
 * Replaces `old` by a copy, unless another thread is doing so. The old one stays mapped,
 * since other threads may be reading it; rules that they add to it meanwhile are lost, and compiled
 * again. If there is no memory, the table stays as it is: rules without room are compiled each
 * time.
 */
static void rules_table_replace(struct rule_table *old, unsigned bits, bool is_shared)
{
    if (atomic_flag_test_and_set_explicit(&growing, memory_order_acquire))
        return;
    if (atomic_load(&rules_table) == old) {
        uint32_t epoch = atomic_load(&rules_epoch);
        struct rule_table *table = rules_table_copy(old, bits, is_shared);
        if (table) {
            atomic_store(&rules_table, table);
            if (atomic_load(&rules_epoch) != epoch) /* the copy may have forgotten rules */
                rules_table_clear(table, 0, UINTPTR_MAX);
        }
    }
    atomic_flag_clear_explicit(&growing, memory_order_release);
}

static unsigned rules_table_bits(const struct rule_table *table)
{
    return 64 - table->shift;
}

/* Returns the table for a rule, NULL if there is none. A confined process shares no more: it may
 * not look at all that rules are compiled from. */
static struct rule_table *rules_table_for(bool is_lasting)
{
    struct rule_table *table = atomic_load(&rules_table);
    if (!table || !table->is_shared || (is_lasting && !unwind_is_confined))
        return table;
    rules_table_replace(table, rules_table_bits(table), false);
    table = atomic_load(&rules_table);
    return table->is_shared ? NULL : table;
}

/* Puts a rule into the table, unless rules were forgotten since `epoch`. */
static void rules_keep(uintptr_t pc, unwind_rule rule, uint32_t epoch, bool is_lasting)
{
    struct rule_table *table = pc != 0 ? rules_table_for(is_lasting) : NULL;
    if (!table)
        return;
    struct rule_entry *entry = rules_table_entry(table, pc);
    if (entry) {
        atomic_store(&entry->rule, rule);
        if (atomic_load(&rules_epoch) != epoch) /* compiled from a module that may be gone */
            atomic_store(&entry->rule, RULE_NONE);
    }
    size_t most = is_forked && table->is_shared ? table->mask / 8 * 7 : table->mask / 2;
    if (!entry || atomic_load_explicit(&table->used, memory_order_relaxed) > most)
        rules_table_replace(table, rules_table_bits(table) + GROW_BITS, table->is_shared);
}

/* Calls announce() for an object that was not announced before. */
static void rules_announce_once(const struct dl_find_object *object)
{
    void (*announcer)(const struct dl_find_object *) = atomic_load(&announce);
    uintptr_t start = (uintptr_t)object->dlfo_map_start;
    size_t i = (size_t)(start * 0x9e3779b97f4a7c15u >> 40);
    if (!announcer)
        return;
    for (unsigned probe = 0; probe < OBJECTS; probe++) {
        uintptr_t announced_start = atomic_load(&announced[(i + probe) % OBJECTS]);
        if (announced_start == start)
            return;
        if (announced_start == 0) {
            announcer(object);
            atomic_compare_exchange_strong(&announced[(i + probe) % OBJECTS], &announced_start,
                                           start);
            return;
        }
    }
    announcer(object);
}

static void rules_lasting_setup(void)
{
    struct dl_find_object object;
    if (_dl_find_object((void *)(uintptr_t)rules_lasting_setup, &object) != 0)
        return;
    last_lasting = object.dlfo_link_map;
    while (last_lasting->l_next)
        last_lasting = last_lasting->l_next;
}

static bool rules_is_lasting(const struct link_map *module)
{
    while (module && module != last_lasting)
        module = module->l_next;
    return module != NULL;
}

unwind_rule rules_make(uintptr_t pc, struct cfi_lookup *lookup)
{
    uint32_t epoch = atomic_load(&rules_epoch);
    if (!modules_find(lookup, pc - 1))
        return RULE_STRAY; /* not kept: a module may be loaded there at any time */
    rules_announce_once(&lookup->object);
    lookup->is_unsettled = false;
    unwind_rule rule = rule_compile(lookup, pc - 1);
    if (lookup->is_unsettled)
        return rule;
    rules_keep(pc, rule, epoch, rules_is_lasting(lookup->object.dlfo_link_map));
    return rule;
}

unwind_rule rules_find_on(struct rule_table *table, uintptr_t pc, struct cfi_lookup *lookup)
{
    size_t i = rules_hash(table, pc);
    for (unsigned probe = 0; probe < RULE_PROBES; probe++) {
        struct rule_entry *entry = &table->entry[(i + probe) & table->mask];
        uintptr_t key = atomic_load_explicit(&entry->pc, memory_order_relaxed);
        if (key == pc) {
            unwind_rule rule = atomic_load_explicit(&entry->rule, memory_order_acquire);
            return rule != RULE_NONE ? rule : rules_make(pc, lookup);
        }
        if (key == 0)
            break;
    }
    return rules_make(pc, lookup);
}

void rules_forget(uintptr_t start, uintptr_t end)
{
    struct rule_table *table;
    atomic_fetch_add(&rules_epoch, 1); /* so that no rule is added that was compiled before */
    do {
        table = atomic_load(&rules_table);
        if (table)
            rules_table_clear(table, start, end);
    } while (table != atomic_load(&rules_table));
    for (unsigned i = 0; i < OBJECTS; i++) {
        uintptr_t announced_start = atomic_load(&announced[i]);
        /* Not 0: that would hide the objects behind it: 1 is the start of no object. */
        if (announced_start >= start && announced_start < end && announced_start > 1)
            atomic_compare_exchange_strong(&announced[i], &announced_start, 1);
    }
    /* Threads may have taken rules from the table meanwhile. */
    atomic_fetch_add(&rules_epoch, 1);
}

void rules_setup(void (*announcer)(const struct dl_find_object *),
                 unwind_frame_finder *frame_finder)
{
    own_modules_setup(frame_finder);
    atomic_store(&announce, announcer);
    for (unsigned i = 0; i < OBJECTS; i++)
        atomic_store_explicit(&announced[i], 0, memory_order_relaxed);
    rules_lasting_setup();
    if (!atomic_load(&rules_table))
        atomic_store(&rules_table, rules_table_new(FIRST_BITS, true));
    else
        rules_forget(0, UINTPTR_MAX); /* so that all objects are announced again */
}

void rules_setup_forked(void)
{
    is_forked = true;
    atomic_flag_clear(&growing); /* the thread that held it is not there */
    if (!atomic_load(&rules_table))
        atomic_store(&rules_table, rules_table_new(FIRST_BITS, false));
}

/* Makes the frames of a walk the last capture, with the words that they rest on. */

/* The rule of a frame if the step from it depends on nothing but the state; else RULE_NONE. */
static unwind_rule plain_rule(const struct new_frame *frame)
{
    bool is_plain = frame->kind == NEW_FRAME_FAST && rule_kind(frame->rule) <= RULE_BP;
    return is_plain ? frame->rule : RULE_NONE;
}

/* Whether rbp is live at a frame, given whether it is live at the caller. */
static bool rules_is_live_at(const struct new_frame *frame, bool is_live_at_caller)
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
rules_add_general_checks(struct unwinder *unwinder, struct check *next,
                         const struct new_frame *frame, const struct known_frame *caller,
                         struct check *arrival, bool is_live)
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
static inline struct check *rules_add_checks(struct unwinder *unwinder, struct check *next,
                                             const struct new_frame *frame, uint32_t caller,
                                             bool is_live)
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
        return rules_add_general_checks(unwinder, next, frame, to, arrival, is_live);
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
        /* If the caller was met, this walk's words on the way there replace the words of the last
         * one. */
        if (i > 0 && is_checked)
            next = rules_add_checks(unwinder, next, frame, i - 1, is_live);
        is_live = rules_is_live_at(frame, is_live);
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
