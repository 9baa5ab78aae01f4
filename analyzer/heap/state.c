/* SPDX-License-Identifier: MIT */
#include "heap/state.h"

#include <stdlib.h>
#include <string.h>

static int compare_blocks(const void *a, const void *b)
{
    const heap_block *x = a;
    const heap_block *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static ttd_status copy_blocks(heap_state *state, const heap_live *live)
{
    state->blocks = malloc((size_t)live->count * sizeof *state->blocks + 1);
    if (!state->blocks)
        return TTD_ERROR_NO_MEMORY;
    size_t cursor = 0;
    const heap_block *block;
    while ((block = heap_live_each(live, &cursor)))
        state->blocks[state->block_count++] = *block;
    qsort(state->blocks, state->block_count, sizeof *state->blocks, compare_blocks);
    return TTD_OK;
}

static ttd_status collect(heap_state *state, const heap_live *live)
{
    size_t cursor = 0;
    const heap_block *block;
    ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(live, &cursor)))
        status = heap_tables_add(&state->tables, block);
    return status;
}

static void begin(heap_state *state, const heap_state_wishes *wishes)
{
    memset(state, 0, sizeof *state);
    heap_tables_init(&state->tables);
    state->tables.by[HEAP_BY_STACK].split = wishes->split;
    for (size_t i = 0; i < HEAP_TABLES; i++)
        state->tables.by[i].has_stacks |= wishes->has_stacks_in_tables;
}

ttd_status heap_state_find(ttd_reader *reader, const heap_keyframes *keyframes, ttd_position at,
                           const heap_state_wishes *wishes, const heap_batch_hook *hook,
                           heap_state *state, ttd_error *error)
{
    begin(state, wishes);
    heap_pass pass;
    bool only_sums = wishes->split == HEAP_SPLIT_NONE && !wishes->has_stacks_in_tables &&
                     !wishes->keeps_blocks && !wishes->has_address;
    ttd_status status = heap_pass_run_sums(&pass, reader, keyframes, at,
                                           only_sums ? &state->tables : NULL, hook, error);
    if (status == TTD_OK)
        status = collect(state, &pass.cursor.replay.live);
    if (status == TTD_OK && wishes->keeps_blocks)
        status = copy_blocks(state, &pass.cursor.replay.live);
    if (status == TTD_OK && wishes->has_address)
        state->neighbours = heap_neighbours_find(&pass.cursor.replay.live, wishes->address);
    heap_pass_end(&pass, &state->outcome);
    if (status == TTD_OK)
        status = heap_tables_sort(&state->tables);
    if (status != TTD_OK)
        heap_state_free(state);
    return status;
}

void heap_state_free(heap_state *state)
{
    heap_tables_free(&state->tables);
    free(state->blocks);
    state->blocks = NULL;
}
