/* SPDX-License-Identifier: MIT */
#include "analyses/state.h"

#include <stdlib.h>
#include <string.h>

static int compare_blocks(const void *a, const void *b)
{
    const struct heap_block *x = a;
    const struct heap_block *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

static enum ttd_status copy_blocks(struct heap_state *state, const struct heap_live *live)
{
    state->blocks = malloc((size_t)live->count * sizeof *state->blocks + 1);
    if (!state->blocks)
        return TTD_ERROR_NO_MEMORY;
    size_t cursor = 0;
    const struct heap_block *block;
    while ((block = heap_live_each(live, &cursor)))
        state->blocks[state->block_count++] = *block;
    qsort(state->blocks, state->block_count, sizeof *state->blocks, compare_blocks);
    return TTD_OK;
}

static enum ttd_status add(void *context, const struct heap_block *block)
{
    struct heap_state *state = context;
    return heap_tables_add(&state->tables, block);
}

/* Blocks that a runtime may keep are decided on later, when it is known which are live at the end.
 */
static enum ttd_status collect(struct heap_state *state, struct heap_kept *kept,
                               const struct heap_live *live)
{
    size_t cursor = 0;
    const struct heap_block *block;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(live, &cursor)))
        status = heap_kept_may_have(kept, block) ? heap_kept_defer(kept, block) : add(state, block);
    return status;
}

static enum ttd_status begin(struct heap_state *state, struct heap_kept *kept,
                             const struct heap_trace *trace,
                             const struct heap_state_options *options, struct ttd_error *error)
{
    memset(state, 0, sizeof *state);
    *kept = (struct heap_kept){.count = 0};
    heap_tables_init(&state->tables);
    state->tables.by[HEAP_BY_STACK].split = options->split;
    for (size_t i = 0; i < HEAP_TABLES; i++)
        state->tables.by[i].has_stacks |= options->has_stacks_in_tables;
    return options->tells_runtime
               ? heap_kept_read(kept, trace, options->split, &state->runtime, error)
               : TTD_OK;
}

/* Whether sums are enough, which a summary of the index has without the blocks. They cannot tell
 * apart blocks that a runtime keeps, nor split groups. */
static bool takes_sums(const struct heap_state_options *options, const struct heap_kept *kept)
{
    return options->split == HEAP_SPLIT_NONE && !options->has_stacks_in_tables &&
           !options->keeps_blocks && !options->has_address && heap_kept_is_empty(kept);
}

/* Fills in the state once the replay has arrived. */
static enum ttd_status find(struct heap_state *state, struct heap_kept *kept,
                            const struct heap_state_options *options, struct heap_arrival *arrival,
                            struct ttd_error *error)
{
    const struct heap_live *live = &arrival->cursor.replay.live;
    state->outcome = heap_arrival_outcome(arrival);
    enum ttd_status status = collect(state, kept, live);
    if (status == TTD_OK && options->keeps_blocks)
        status = copy_blocks(state, live);
    if (status == TTD_OK && options->has_address)
        state->neighbours = heap_neighbours_find(live, options->address);
    if (status == TTD_OK)
        status = heap_kept_decide(kept, &arrival->cursor, &state->runtime, add, state, error);
    if (status == TTD_OK)
        status = heap_tables_sort(&state->tables);
    return status == TTD_OK ? heap_groups_sort(&state->runtime.groups) : status;
}

enum ttd_status heap_state_find(const struct heap_trace *trace,
                                const struct heap_state_options *options, struct heap_state *state,
                                struct ttd_error *error)
{
    struct heap_kept kept;
    struct heap_arrival arrival = {.has_losses = false};
    enum ttd_status status = begin(state, &kept, trace, options, error);
    struct heap_route route = {.to = options->at,
                               .sums = takes_sums(options, &kept) ? &state->tables : NULL};
    if (status == TTD_OK)
        status = heap_replay_to(&arrival, trace, &route, error);
    if (status == TTD_OK)
        status = find(state, &kept, options, &arrival, error);
    heap_arrival_free(&arrival);
    heap_kept_free(&kept);
    if (status != TTD_OK)
        heap_state_free(state);
    return status;
}

void heap_state_free(struct heap_state *state)
{
    heap_tables_free(&state->tables);
    heap_groups_free(&state->runtime.groups);
    free(state->blocks);
    state->blocks = NULL;
}
