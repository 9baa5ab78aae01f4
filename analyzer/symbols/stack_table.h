/* SPDX-License-Identifier: MIT */
/** The table of a trace's stacks. They stay encoded as in the file, because there may be millions
 * of which few are looked at: see <ttdtrace/advanced.h>. */
#ifndef ANALYZER_SYMBOLS_STACK_TABLE_H
#define ANALYZER_SYMBOLS_STACK_TABLE_H

#include <ttdtrace/advanced.h>

/** The stacks of a chunk. */
struct stack_chunk {
    ttd_id first;
    uint32_t count;
    struct ttd_stacks *stacks;
};

/** Receiver of damage found in stacks, called at each look-up: the error is the same for all stacks
 * of a chunk. */
struct stack_damage {
    void *context;
    void (*tell)(void *context, const struct ttd_error *error);
};

/** All zero at first. */
struct stack_table {
    /** Chunks, in increasing order of their identifiers. */
    struct stack_chunk *chunks;
    size_t count;
    size_t capacity;
    /** May be set before the first look-up. */
    struct stack_damage damage;
    /** Steps that are left, see stack_table_spend(); NULL for no limit. Not owned. */
    uint64_t *steps;
};

void stack_table_free(struct stack_table *table);

/**
 * Adds a chunk. A chunk that defines an identifier again is ignored, since a definition never
 * changes.
 *
 * @param batch  of a reader with lazy_stacks
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status stack_table_add(struct stack_table *table, const struct ttd_batch *batch);

/**
 * Spends steps, the unit of work on stacks. Limits what a crafted trace can cost in which millions
 * of stacks share thousands of callers.
 *
 * @return TTD_OK, or TTD_ERROR_LIMIT if fewer steps are left
 */
enum ttd_status stack_table_spend(const struct stack_table *table, uint64_t steps);

/** Finds the chunk of a stack; NULL if there is none. */
struct stack_chunk *stack_table_find(const struct stack_table *table, ttd_id id);

/**
 * Looks up a stack. Costs one step.
 *
 * @param stack  set on TTD_OK
 * @return TTD_OK, TTD_END (undefined, or damaged and reported), TTD_ERROR_NO_MEMORY,
 * TTD_ERROR_LIMIT.
 */
enum ttd_status stack_table_get(const struct stack_table *table, ttd_id id,
                                struct ttd_stack *stack);

#endif
