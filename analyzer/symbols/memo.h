/* SPDX-License-Identifier: MIT */
/** A memo of facts about stacks: finds each fact once. A fact about a stack follows from its own
 * frame and the same fact about its parent, and stacks share their callers. With the fact kept
 * for each stack, a million stacks with a thousand shared frames cost a million steps, not a
 * billion. */
#ifndef ANALYZER_SYMBOLS_MEMO_H
#define ANALYZER_SYMBOLS_MEMO_H

#include "symbols/trace_definitions.h"

/** The functions that find a fact. Both return TTD_OK, or the status that stack_memo_find() is to
 * return. */
struct stack_memo_finder {
    void *context;
    /** Called first for each stack whose fact is not known, from the innermost outward. Sets `fact`
     * (0) if it does not depend on the parent's: then no caller is looked at. May be NULL. */
    enum ttd_status (*meet)(void *context, const struct ttd_stack *stack, uint32_t *fact);
    /**
     * Called then for the stacks without a fact, from the outermost inward.
     *
     * @param above  the fact about the parent; 0 if that is not defined
     * @param fact   to be set to any value but 0
     */
    enum ttd_status (*find)(void *context, const struct ttd_stack *stack, uint32_t above,
                            uint32_t *fact);
};

/** A stack whose fact is being found, and the place of the fact. */
struct stack_memo_step {
    struct ttd_stack stack;
    uint32_t *fact;
};

/** All zero when empty. */
struct stack_memo {
    /** Facts by chunk of the stack table and stack, 0 where not found yet. A chunk without any fact
     * is NULL. */
    uint32_t **chunks;
    size_t chunk_count;
    /** The stacks whose facts are being found, innermost first. */
    struct stack_memo_step *path;
    size_t path_capacity;
};

void stack_memo_free(struct stack_memo *memo);

/**
 * Finds the fact about a stack, and the facts about the callers that it depends on.
 *
 * @param table  always the same, and complete
 * @param fact   set on TTD_OK; 0 if the stack is not defined
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT, or the finder's status.
 */
enum ttd_status stack_memo_find(struct stack_memo *memo, const struct stack_table *table,
                                ttd_id stack, const struct stack_memo_finder *finder,
                                uint32_t *fact);

/*
 * Stacks that are the same although their identifiers differ: a module that is loaded, unloaded and
 * loaded again is another module in a trace, and has stacks of its own. Frames are the same if
 * their offsets are and their modules have the same build-id; or, without one, the same path and
 * size, and the frames the same names.
 */

/** All zero at first. */
struct same_stacks {
    /** By identifier: the first module that is like each; empty if no two are alike. */
    struct hash_map first_modules;
    /** By the first stack like a stack's caller, and by module and offset in turn. */
    struct hash_map stacks;
    struct hash_map sites;
    uint32_t site_count;
    struct stack_memo memo;
    struct definitions *definitions;
    bool has_compared;
    bool has_any;
};

void same_stacks_free(struct same_stacks *same);

/**
 * Sets `*are_there` to whether any two modules are alike: else no two stacks are.
 *
 * @param definitions  always the same, and complete
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status same_stacks_are_there(struct same_stacks *same, struct definitions *definitions,
                                      bool *are_there);

/**
 * Finds the stack that stands for all that are the same; the stack itself if it is not defined.
 * Call same_stacks_are_there() first, and this function only if some are there.
 *
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status same_stacks_find(struct same_stacks *same, ttd_id stack, ttd_id *first);

#endif
