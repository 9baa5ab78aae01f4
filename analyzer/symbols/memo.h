/* SPDX-License-Identifier: MIT */
/**
 * Facts about stacks, each found once. Stacks share what they are called by: a fact about a stack
 * is one about its own frame and the same fact about its parent. With it kept for each stack, a
 * million stacks with a thousand shared frames cost a million steps.
 */
#ifndef ANALYZER_SYMBOLS_MEMO_H
#define ANALYZER_SYMBOLS_MEMO_H

#include "symbols/stacks.h"

/** How a fact is found. Both functions return TTD_OK, or what stack_memo_find() is to return. */
struct stack_memo_finder {
    void *context;
    /** Called first, for each stack whose fact is not known, from the innermost outward; may be
     * NULL. */
    enum ttd_status (*meet)(void *context, const struct ttd_stack *stack);
    /**
     * Then for the same, from the outermost inward.
     *
     * @param above  the fact about its parent, 0 if that is not defined
     * @param fact   to be set to anything but 0
     */
    enum ttd_status (*find)(void *context, const struct ttd_stack *stack, uint32_t above,
                            uint32_t *fact);
};

/** All zero when empty. */
struct stack_memo {
    /** Facts of each chunk of the table, 0 where not found yet; NULL before the first of a chunk.
     */
    uint32_t **chunks;
    size_t chunk_count;
    /** Stacks on the way to one whose fact is known, the innermost first. */
    struct ttd_stack *path;
    size_t path_capacity;
};

void stack_memo_free(struct stack_memo *memo);

/**
 * Finds the fact about a stack, and about all that it is called by.
 *
 * @param table  always the same, and complete
 * @param fact   set on TTD_OK; 0 if the stack is not defined
 * @return TTD_OK, TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT, or what the finder returns.
 */
enum ttd_status stack_memo_find(struct stack_memo *memo, const struct stack_table *table,
                                ttd_id stack, const struct stack_memo_finder *finder,
                                uint32_t *fact);

#endif
