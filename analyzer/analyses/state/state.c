/* SPDX-License-Identifier: MIT */
/* The live blocks at a position. */
#include "analyses/state/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "heap/heap_live.h"

#define KINDS TTD_KIND_BIT(TTD_KIND_EVENTS)

static int state_compare_events(const void *a, const void *b)
{
    const struct heap_block *const *x = a;
    const struct heap_block *const *y = b;
    return ((*x)->event > (*y)->event) - ((*x)->event < (*y)->event);
}

static bool confirm_is_acquired(const struct ttd_event *event, const struct heap_block *block)
{
    bool acquires = event->action == TTD_ACTION_ALLOC || event->action == TTD_ACTION_REALLOC;
    return acquires && event->result && event->number == block->event &&
           event->address == block->address && event->size == block->size &&
           ttd_position_compare(event->time_end, block->allocated) == 0 &&
           event->stack == block->stack && event->thread == block->thread &&
           event->heap == block->heap && event->api == block->api;
}

static bool state_has_event(const struct ttd_batch *batch, uint64_t number)
{
    return batch->kind == TTD_KIND_EVENTS && batch->count && batch->u.events[0].number <= number &&
           number - batch->u.events[0].number < batch->count;
}

/* Whether an event comes later in the chunk of a batch. */
static bool state_is_ahead(const struct ttd_batch *batch, uint64_t number)
{
    uint64_t end = batch->chunk.first_record + batch->chunk.record_count;
    return batch->kind == TTD_KIND_EVENTS && batch->count && batch->u.events[0].number < number &&
           number < end;
}

/* Makes `batch` (the last one read, or empty) the one with the event. */
static enum ttd_status confirm_go_to(struct ttd_reader *reader, uint64_t number,
                                     struct ttd_batch *batch, struct ttd_error *error)
{
    enum ttd_status status = TTD_OK;
    if (!state_has_event(batch, number) && !state_is_ahead(batch, number)) {
        batch->count = 0;
        status = ttd_reader_rewind(reader, KINDS);
        if (status == TTD_OK)
            status = ttd_reader_seek_event(reader, number, error);
        if (status == TTD_OK)
            status = ttd_reader_next(reader, batch, error);
    }
    while (status == TTD_OK && state_is_ahead(batch, number) && !state_has_event(batch, number))
        status = ttd_reader_next(reader, batch, error);
    if (status == TTD_OK)
        return state_has_event(batch, number) ? TTD_OK : TTD_ERROR_CORRUPT;
    return status == TTD_ERROR_IO || status == TTD_ERROR_NO_MEMORY ? status : TTD_ERROR_CORRUPT;
}

/* Finds the event that acquired a block; CORRUPT if it did not. Valid until the next batch. */
static enum ttd_status confirm_find_event(struct ttd_reader *reader, const struct heap_block *block,
                                          struct ttd_batch *batch, const struct ttd_event **event,
                                          struct ttd_error *error)
{
    enum ttd_status status = confirm_go_to(reader, block->event, batch, error);
    if (status != TTD_OK)
        return status;
    *event = &batch->u.events[block->event - batch->u.events[0].number];
    return confirm_is_acquired(*event, block) ? TTD_OK : TTD_ERROR_CORRUPT;
}

enum ttd_status heap_confirm_and_complete(struct ttd_reader *reader, struct heap_block *block,
                                          uint64_t *previous_address, enum heap_move *move,
                                          struct ttd_error *error)
{
    struct ttd_batch batch = {.count = 0};
    const struct ttd_event *event;
    enum ttd_status status = confirm_find_event(reader, block, &batch, &event, error);
    if (status != TTD_OK)
        return status;
    block->action = event->action;
    *previous_address = event->action == TTD_ACTION_REALLOC ? event->base_address : 0;
    *move = heap_move_of(event->api, event->flags, *previous_address, event->address);
    return TTD_OK;
}

enum ttd_status heap_confirm_blocks(struct ttd_reader *reader, const struct heap_block *blocks,
                                    size_t count, struct ttd_error *error)
{
    /* In the order of their events, so that each chunk is decoded once. */
    const struct heap_block **sorted = malloc((count + 1) * sizeof *sorted);
    if (!sorted)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &blocks[i];
    qsort(sorted, count, sizeof *sorted, state_compare_events);
    struct ttd_batch batch = {.count = 0};
    enum ttd_status status = TTD_OK;
    const struct ttd_event *event;
    for (size_t i = 0; i < count && status == TTD_OK; i++)
        status = confirm_find_event(reader, sorted[i], &batch, &event, error);
    free(sorted);
    return status;
}

static enum ttd_status state_add_list(struct heap_kept *kept, struct heap_runtime *runtime,
                                      const struct ttd_live_blocks *list)
{
    enum ttd_status status = TTD_OK;
    if (list->list != TTD_BLOCKS_RUNTIME)
        return TTD_OK;
    if (list->last)
        runtime->list = HEAP_RUNTIME_TOLD;
    else if (runtime->list == HEAP_RUNTIME_UNKNOWN)
        runtime->list = HEAP_RUNTIME_CUT_SHORT;
    for (size_t i = 0; i < list->count && status == TTD_OK; i++)
        status = map_set(&kept->addresses, list->blocks[i].address, 0, 1);
    kept->address_count += list->count;
    return status;
}

enum ttd_status heap_kept_read(struct heap_kept *kept, const struct heap_trace *trace,
                               enum heap_split split, struct heap_runtime *runtime,
                               struct ttd_error *error)
{
    *kept = (struct heap_kept){.judge = trace->hook.judge};
    map_init(&kept->addresses);
    runtime->list = HEAP_RUNTIME_UNKNOWN;
    heap_groups_init(&runtime->groups);
    runtime->groups.split = split;
    runtime->groups.sample = trace->choice.sample;
    enum ttd_status status = ttd_reader_rewind(trace->reader, TTD_KIND_BIT(TTD_KIND_LIVE_BLOCKS));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(trace->reader, &batch, error);
        for (size_t i = 0;
             status == TTD_OK && batch.kind == TTD_KIND_LIVE_BLOCKS && i < batch.count; i++)
            status = state_add_list(kept, runtime, &batch.u.live_blocks[i]);
    }
    return heap_is_over(status) ? TTD_OK : status;
}

void heap_kept_free(struct heap_kept *kept)
{
    map_free(&kept->addresses);
    free(kept->candidates);
    *kept = (struct heap_kept){.count = 0};
}

/* Copies the block, because the replay goes on to the end and changes the table of live blocks. */
enum ttd_status heap_kept_defer(struct heap_kept *kept, const struct heap_block *block)
{
    enum ttd_status status = grow_array((void **)&kept->candidates, &kept->capacity,
                                        kept->count + 1, sizeof *kept->candidates);
    if (status == TTD_OK)
        kept->candidates[kept->count++] = *block;
    return status;
}

/* Whether the same block is live at the end. The list has addresses only, and another block may
 * have had the address before. */
static bool state_kept_is_live(const struct heap_live *live, const struct heap_block *block)
{
    const struct heap_block *last = heap_live_find(live, block->address, block->heap);
    return last && last->event == block->event;
}

/* The cursor goes to the end only if an address is listed: the way is long, and where stacks decide
 * it is not needed. */
enum ttd_status heap_kept_decide(struct heap_kept *kept, struct heap_cursor *cursor,
                                 struct heap_runtime *runtime, heap_kept_function *add,
                                 void *context, struct ttd_error *error)
{
    enum ttd_status status = TTD_OK;
    bool needs_end = false;
    size_t decided = 0;
    for (size_t i = 0; i < kept->count && !needs_end; i++)
        needs_end = !heap_kept_has_stack(kept, &kept->candidates[i]);
    if (needs_end)
        status = heap_cursor_seek(cursor, ttd_position_max(), error);
    for (size_t i = 0; i < kept->count && status == TTD_OK; i++) {
        const struct heap_block *block = &kept->candidates[i];
        bool stays =
            heap_kept_has_stack(kept, block) || state_kept_is_live(&cursor->replay.live, block);
        status = stays ? heap_groups_add(&runtime->groups, block) : add(context, block);
        if (stays)
            kept->candidates[decided++] = *block;
    }
    if (status == TTD_OK)
        kept->count = decided;
    return status;
}

static struct heap_neighbour state_neighbours_of_block(const struct heap_block *block)
{
    return block ? (struct heap_neighbour){block->address, block->size, heap_call_of_block(block)}
                 : (struct heap_neighbour){.allocated = heap_call_none()};
}

/* The table of live blocks is a hash table, so finding the nearest block takes a look at all. */
struct heap_neighbours heap_neighbours_find(const struct heap_live *live, uint64_t address)
{
    const struct heap_block *before = NULL, *after = NULL, *block;
    size_t cursor = 0;
    while ((block = heap_live_each(live, &cursor))) {
        if (heap_block_covers(block, address, address))
            continue;
        if (block->address < address && (!before || block->address > before->address))
            before = block;
        if (block->address > address && (!after || block->address < after->address))
            after = block;
    }
    return (struct heap_neighbours){state_neighbours_of_block(before),
                                    state_neighbours_of_block(after)};
}

static enum ttd_status state_copy_blocks(struct heap_state *state,
                                         const struct heap_islands *islands,
                                         const struct heap_live *live)
{
    state->blocks = malloc((size_t)live->count * sizeof *state->blocks + 1);
    if (!state->blocks)
        return TTD_ERROR_NO_MEMORY;
    size_t cursor = 0;
    const struct heap_block *block;
    while ((block = heap_live_each(live, &cursor)))
        if (heap_islands_want_block(islands, block))
            state->blocks[state->block_count++] = *block;
    qsort(state->blocks, state->block_count, sizeof *state->blocks, heap_compare_blocks);
    return TTD_OK;
}

static enum ttd_status state_add_block(void *context, const struct heap_block *block)
{
    struct heap_state *state = context;
    enum ttd_status status = TTD_OK;
    if (heap_is_unknown(block->allocated, state->outcome.unknown_before))
        status = heap_groups_add(&state->unknown, block);
    return status == TTD_OK ? heap_tables_add(&state->tables, block) : status;
}

/* Adds all live blocks to the tables. Blocks that a runtime may keep are deferred until the end of
 * the trace shows the live ones. */
static enum ttd_status state_collect(struct heap_state *state, struct heap_kept *kept,
                                     const struct heap_islands *islands,
                                     const struct heap_live *live)
{
    size_t cursor = 0;
    const struct heap_block *block;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(live, &cursor))) {
        if (!heap_islands_want_block(islands, block))
            continue;
        status = heap_kept_may_have(kept, block) ? heap_kept_defer(kept, block)
                                                 : state_add_block(state, block);
    }
    return status;
}

static enum ttd_status state_begin(struct heap_state *state, struct heap_kept *kept,
                                   const struct heap_trace *trace,
                                   const struct heap_state_options *options,
                                   struct ttd_error *error)
{
    memset(state, 0, sizeof *state);
    *kept = (struct heap_kept){.count = 0};
    heap_tables_init(&state->tables);
    heap_groups_init(&state->unknown);
    state->unknown.sample = trace->choice.sample;
    state->tables.by[HEAP_BY_STACK].split = options->split;
    for (size_t i = 0; i < HEAP_TABLES; i++) {
        state->tables.by[i].has_stacks |= options->has_stacks_in_tables;
        state->tables.by[i].sample = trace->choice.sample;
    }
    state->tables.by[HEAP_BY_STACK].classes = options->classes;
    if (!options->tells_runtime)
        return TTD_OK;
    enum ttd_status status = heap_kept_read(kept, trace, options->split, &state->runtime, error);
    state->runtime.groups.classes = options->classes;
    return status;
}

/* Whether the sums of a summary are enough. They have no single blocks, so the blocks of a runtime
 * cannot be separated from them, and their groups cannot be split. */
static bool state_takes_sums(const struct heap_state_options *options, const struct heap_kept *kept)
{
    return options->split == HEAP_SPLIT_NONE && !options->has_stacks_in_tables &&
           !options->counts_nested && !options->keeps_blocks && !options->has_address &&
           !options->islands && heap_kept_is_empty(kept);
}

static size_t state_copy_block(struct heap_block *copy, const struct heap_block *block)
{
    if (block)
        *copy = *block;
    return block != NULL;
}

/* Copies the block that the address lies in, and those beside it. */
static size_t state_copy_around(const struct heap_state *state, const struct heap_live *live,
                                uint64_t address, struct heap_block copies[3])
{
    const struct heap_neighbours *beside = &state->neighbours;
    size_t count = state_copy_block(copies, heap_live_containing(live, address));
    if (beside->before.address)
        count += state_copy_block(&copies[count],
                                  heap_live_find(live, beside->before.address, TTD_NONE));
    if (beside->after.address)
        count +=
            state_copy_block(&copies[count], heap_live_find(live, beside->after.address, TTD_NONE));
    return count;
}

/* Compares the blocks that are shown one by one with the trace. This moves the reader, so the
 * cursor cannot go on afterwards. */
static enum ttd_status confirm(const struct heap_state *state,
                               const struct heap_state_options *options,
                               struct heap_arrival *arrival, struct ttd_error *error)
{
    struct heap_block around[3];
    const struct heap_live *live = &arrival->cursor.replay.live;
    struct ttd_reader *reader = arrival->cursor.reader;
    if (!options->confirms_blocks || !arrival->cursor.start)
        return TTD_OK;
    enum ttd_status status = heap_confirm_blocks(reader, state->blocks, state->block_count, error);
    if (status != TTD_OK || !options->has_address)
        return status;
    size_t count = state_copy_around(state, live, options->address, around);
    return heap_confirm_blocks(reader, around, count, error);
}

static void state_set_parents(struct heap_state *state, const struct heap_parents *parents)
{
    for (size_t i = 0; i < HEAP_TABLES; i++)
        state->tables.by[i].parents = parents;
}

/* Fills in the state once the replay has arrived. */
static enum ttd_status state_fill(struct heap_state *state, struct heap_kept *kept,
                                  const struct heap_state_options *options,
                                  struct heap_arrival *arrival, struct ttd_error *error)
{
    const struct heap_live *live = &arrival->cursor.replay.live;
    state->outcome = heap_arrival_outcome(arrival);
    state->outcome.since = options->at;
    if (options->counts_nested)
        state_set_parents(state, &live->parents);
    enum ttd_status status = state_collect(state, kept, options->islands, live);
    if (status == TTD_OK && options->keeps_blocks)
        status = state_copy_blocks(state, options->islands, live);
    if (status == TTD_OK && options->has_address)
        state->neighbours = heap_neighbours_find(live, options->address);
    if (status == TTD_OK)
        status = heap_kept_decide(kept, &arrival->cursor, &state->runtime, state_add_block, state,
                                  error);
    if (status == TTD_OK)
        status = heap_tables_sort(&state->tables);
    state_set_parents(state, NULL);
    return status == TTD_OK ? heap_groups_sort(&state->runtime.groups) : status;
}

static enum ttd_status state_go(const struct heap_trace *trace,
                                const struct heap_state_options *options, struct heap_state *state,
                                bool *is_refuted, struct ttd_error *error)
{
    struct heap_kept kept;
    struct heap_arrival arrival = {.has_losses = false};
    enum ttd_status status = state_begin(state, &kept, trace, options, error);
    struct heap_route route = {
        .to = options->at,
        .wants_blocks_only = heap_is_end(options->at),
        .sums = state_takes_sums(options, &kept) && !trace->choice.sample ? &state->tables : NULL};
    if (status == TTD_OK)
        status = heap_replay_to(&arrival, trace, &route, error);
    if (status == TTD_OK)
        status = state_fill(state, &kept, options, &arrival, error);
    if (status == TTD_OK) {
        status = confirm(state, options, &arrival, error);
        *is_refuted = status == TTD_ERROR_CORRUPT;
    }
    heap_arrival_free(&arrival);
    heap_kept_free(&kept);
    if (status != TTD_OK)
        heap_state_free(state);
    return status;
}

enum ttd_status heap_state_find(const struct heap_trace *trace,
                                const struct heap_state_options *options, struct heap_state *state,
                                struct ttd_error *error)
{
    bool is_refuted = false;
    enum ttd_status status = state_go(trace, options, state, &is_refuted, error);
    if (!is_refuted)
        return status;
    struct heap_trace alone = *trace;
    alone.keyframes = NULL;
    status = state_go(&alone, options, state, &is_refuted, error);
    if (status == TTD_OK)
        state->outcome.has_refuted_index = true;
    return status;
}

void heap_state_free(struct heap_state *state)
{
    heap_tables_free(&state->tables);
    heap_groups_free(&state->runtime.groups);
    heap_groups_free(&state->unknown);
    free(state->blocks);
    state->blocks = NULL;
}
