/* SPDX-License-Identifier: MIT */
#include "symbols/stack_table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void stack_table_free(struct stack_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        ttd_stacks_close(table->chunks[i].stacks);
    free(table->chunks);
    memset(table, 0, sizeof *table);
}

enum ttd_status stack_table_add(struct stack_table *table, const struct ttd_batch *batch)
{
    const struct stack_chunk *last = table->count ? &table->chunks[table->count - 1] : NULL;
    /* The first definition of an identifier counts. A crafted chunk may define some identifiers
     * again and others for the first time: only the latter are added. */
    uint64_t defined = last ? (uint64_t)last->first + last->count : 0;
    uint64_t first = batch->chunk.first_record > defined ? batch->chunk.first_record : defined;
    uint64_t after = batch->chunk.first_record + batch->chunk.record_count;
    if (after <= first)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&table->chunks, &table->capacity, table->count + 1,
                                        sizeof *table->chunks);
    struct stack_chunk chunk = {.first = (ttd_id)first, .count = (uint32_t)(after - first)};
    if (status == TTD_OK)
        status = ttd_stacks_open(batch, NULL, &chunk.stacks);
    if (status == TTD_OK)
        table->chunks[table->count++] = chunk;
    return status;
}

/* Chunks do not overlap and are sorted, so the search is a binary one. A trace has thousands of
 * them. */
struct stack_chunk *stack_table_find(const struct stack_table *table, ttd_id id)
{
    size_t low = 0;
    size_t high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct stack_chunk *chunk = &table->chunks[middle];
        if (id < chunk->first)
            high = middle;
        else if (id - chunk->first >= chunk->count)
            low = middle + 1;
        else
            return chunk;
    }
    return NULL;
}

/* Once the steps are spent none are left for cheaper work either: a command that has reached its
 * limit must not go on with a part of its findings. */
enum ttd_status stack_table_spend(const struct stack_table *table, uint64_t steps)
{
    if (!table->steps)
        return TTD_OK;
    bool is_enough = steps <= *table->steps;
    *table->steps = is_enough ? *table->steps - steps : 0;
    return is_enough ? TTD_OK : TTD_ERROR_LIMIT;
}

enum ttd_status stack_table_get(const struct stack_table *table, ttd_id id, struct ttd_stack *stack)
{
    struct stack_chunk *chunk = stack_table_find(table, id);
    if (!chunk)
        return TTD_END;
    struct ttd_error error = {.what = NULL};
    enum ttd_status status = stack_table_spend(table, 1);
    if (status != TTD_OK)
        return status;
    status = ttd_stacks_get(chunk->stacks, id, stack, &error);
    /* Damage ends the stack at this frame. The report goes on, and says that the trace is damaged.
     */
    if (status != TTD_ERROR_CORRUPT)
        return status;
    if (table->damage.tell)
        table->damage.tell(table->damage.context, &error);
    return TTD_END;
}
