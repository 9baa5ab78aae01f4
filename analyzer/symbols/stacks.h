/* SPDX-License-Identifier: MIT */
/**
 * The stacks of a trace, kept as they are in the file: there may be millions of them, of which few
 * are looked at. See <ttdtrace/stacks.h>.
 */
#ifndef ANALYZER_SYMBOLS_STACKS_H
#define ANALYZER_SYMBOLS_STACKS_H

#include <ttdtrace/stacks.h>

/** The stacks of a chunk. */
struct stack_chunk {
    ttd_id first;
    uint32_t count;
    struct ttd_stacks *stacks;
};

/** Told why a stack cannot be had, each time; the same for all of a chunk. */
struct stack_damage {
    void *context;
    void (*tell)(void *context, const struct ttd_error *error);
};

/** All zero at first. */
struct stack_table {
    /** In increasing order of their ids. */
    struct stack_chunk *chunks;
    size_t count;
    size_t capacity;
    /** May be set before the first look-up. */
    struct stack_damage damage;
    /** How many steps may still be taken, see stack_table_spend(); NULL for any number. Not owned.
     */
    uint64_t *steps;
};

void stack_table_free(struct stack_table *table);

/**
 * Adds a chunk; one that defines an identifier once more is ignored, since a definition never
 * changes.
 *
 * @param batch  of a reader with stored_stacks
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status stack_table_add(struct stack_table *table, const struct ttd_batch *batch);

/**
 * Counts work on stacks, so that a crafted trace, in which millions of stacks of thousands of
 * frames share what they are called by, costs no more than is allowed.
 *
 * @return TTD_OK, TTD_ERROR_LIMIT for more than there are left.
 */
enum ttd_status stack_table_spend(const struct stack_table *table, uint64_t steps);

/** The chunk of a stack; NULL if there is none. */
struct stack_chunk *stack_table_find(const struct stack_table *table, ttd_id id);

/**
 * Looks up a stack, which is a step.
 *
 * @param stack  set on TTD_OK
 * @return TTD_OK, TTD_END (there is no such one, or it is in damage that was told),
 *         TTD_ERROR_NO_MEMORY, TTD_ERROR_LIMIT.
 */
enum ttd_status stack_table_get(const struct stack_table *table, ttd_id id,
                                struct ttd_stack *stack);

#endif
