/* SPDX-License-Identifier: MIT */
#include "symbols/memo.h"

#include <stdlib.h>

#include "base/grow.h"

void stack_memo_free(struct stack_memo *memo)
{
    for (size_t i = 0; i < memo->chunk_count; i++)
        free(memo->chunks[i]);
    free(memo->chunks);
    free(memo->path);
    *memo = (struct stack_memo){.chunks = NULL};
}

/* Finds the cell of a stack's fact. @return TTD_OK, TTD_END (the stack is not defined),
 * TTD_ERROR_NO_MEMORY. */
static enum ttd_status memo_cell(struct stack_memo *memo, const struct stack_table *table,
                                 ttd_id id, uint32_t **cell)
{
    const struct stack_chunk *chunk = stack_table_find(table, id);
    if (!chunk)
        return TTD_END;
    if (!memo->chunks) {
        memo->chunks = calloc(table->count, sizeof *memo->chunks);
        if (!memo->chunks)
            return TTD_ERROR_NO_MEMORY;
        memo->chunk_count = table->count;
    }
    uint32_t **facts = &memo->chunks[chunk - table->chunks];
    if (!*facts)
        *facts = calloc(chunk->count, sizeof **facts);
    if (!*facts)
        return TTD_ERROR_NO_MEMORY;
    *cell = &(*facts)[id - chunk->first];
    return TTD_OK;
}

/* Sets memo->path to the stacks without a fact, from `stack` outward, and `fact` to that of the
 * first caller that has one; 0 if none has. */
static enum ttd_status memo_climb(struct stack_memo *memo, const struct stack_table *table,
                                  ttd_id id, const struct stack_memo_finder *finder, size_t *count,
                                  uint32_t *fact)
{
    enum ttd_status status;
    *count = 0;
    *fact = 0;
    for (;;) {
        uint32_t *cell;
        status = memo_cell(memo, table, id, &cell);
        if (status != TTD_OK)
            break;
        *fact = *cell;
        if (*fact)
            break;
        status =
            grow_array((void **)&memo->path, &memo->path_capacity, *count + 1, sizeof *memo->path);
        if (status == TTD_OK)
            status = stack_table_get(table, id, &memo->path[*count]);
        if (status == TTD_OK && finder->meet)
            status = finder->meet(finder->context, &memo->path[*count]);
        if (status != TTD_OK)
            break;
        id = memo->path[(*count)++].parent;
    }
    return status == TTD_END ? TTD_OK : status;
}

enum ttd_status stack_memo_find(struct stack_memo *memo, const struct stack_table *table,
                                ttd_id stack, const struct stack_memo_finder *finder,
                                uint32_t *fact)
{
    size_t count;
    uint32_t caller_fact;
    enum ttd_status status = memo_climb(memo, table, stack, finder, &count, &caller_fact);
    while (status == TTD_OK && count > 0) {
        const struct ttd_stack *next = &memo->path[--count];
        uint32_t own_fact = 0;
        uint32_t *cell;
        status = finder->find(finder->context, next, caller_fact, &own_fact);
        if (status == TTD_OK)
            status = memo_cell(memo, table, next->id, &cell);
        if (status == TTD_OK)
            *cell = caller_fact = own_fact;
    }
    if (status == TTD_OK)
        *fact = caller_fact;
    return status;
}
