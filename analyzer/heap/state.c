/* SPDX-License-Identifier: MIT */
#include "heap/state.h"

#include <stdlib.h>
#include <string.h>

void heap_size_class(ttd_id size_class, uint64_t *first, uint64_t *last)
{
    *first = size_class ? UINT64_C(1) << (size_class - 1) : 0;
    *last = size_class ? *first + (*first - 1) : 0;
}

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

static ttd_status collect(heap_state *state, const heap_live *live, bool has_tables)
{
    size_t cursor = 0;
    const heap_block *block;
    ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(live, &cursor))) {
        status = heap_groups_add(&state->groups, block);
        if (!has_tables)
            continue;
        if (status == TTD_OK)
            status = heap_groups_add(&state->heaps, block);
        if (status == TTD_OK)
            status = heap_groups_add(&state->threads, block);
        if (status == TTD_OK)
            status = heap_groups_add(&state->sizes, block);
    }
    return status;
}

ttd_status heap_state_find(ttd_reader *reader, const heap_keyframes *keyframes, ttd_position at,
                           const heap_state_wishes *wishes, const heap_batch_hook *hook,
                           heap_state *state, ttd_error *error)
{
    memset(state, 0, sizeof *state);
    heap_groups *all[] = {&state->groups, &state->heaps, &state->threads, &state->sizes};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        heap_groups_init(all[i]);
        all[i]->has_stacks = all[i] == &state->groups || wishes->has_stacks_in_tables;
    }
    state->groups.split = wishes->split;
    state->heaps.split = HEAP_SPLIT_HEAP;
    state->threads.split = HEAP_SPLIT_THREAD;
    state->sizes.split = HEAP_SPLIT_SIZE;
    heap_pass pass;
    ttd_status status = heap_pass_run(&pass, reader, keyframes, at, NULL, hook, error);
    if (status == TTD_OK)
        status = collect(state, &pass.cursor.replay.live, wishes->has_tables);
    if (status == TTD_OK && wishes->keeps_blocks)
        status = copy_blocks(state, &pass.cursor.replay.live);
    heap_pass_end(&pass, &state->outcome);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        heap_groups_sort(all[i]);
    if (status != TTD_OK)
        heap_state_free(state);
    return status;
}

void heap_state_free(heap_state *state)
{
    heap_groups_free(&state->groups);
    heap_groups_free(&state->heaps);
    heap_groups_free(&state->threads);
    heap_groups_free(&state->sizes);
    free(state->blocks);
    state->blocks = NULL;
}
