/* SPDX-License-Identifier: MIT */
#include "analyses/activity/moves.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/activity/growth.h"
#include "analyses/activity/regrowth.h"
#include "base/grow.h"

struct move_finder {
    struct heap_moves *moves;
    struct regrowth_finder regrowths;
    /** The hook of the trace, which sees each batch as well. */
    struct heap_batch_hook hook;
};

static void count_call(struct heap_move_counts *counts, const struct ttd_event *event)
{
    counts->reallocs++;
    if (!ttd_event_returned(event))
        counts->unfinished++;
    else if (!event->result)
        counts->failed++;
    else if (!event->address)
        counts->to_zero++;
    else if (!event->base_address)
        counts->from_null++;
    else if (event->base_address == event->address)
        counts->in_place++;
    else
        counts->moved++;
}

/* Calls are counted from the events: one that failed or never returned has no effect to observe. */
static enum ttd_status see_batch(void *context, const struct ttd_batch *batch)
{
    struct move_finder *finder = context;
    struct heap_moves *moves = finder->moves;
    for (size_t i = 0; batch->kind == TTD_KIND_EVENTS && i < batch->count; i++) {
        const struct ttd_event *event = &batch->u.events[i];
        if (event->action != TTD_ACTION_REALLOC)
            continue;
        struct heap_move_group *group;
        struct heap_key key = heap_key_of(moves->split, event->stack, event->thread, event->heap);
        enum ttd_status status = heap_move_table_find(&moves->reallocs, key, &group);
        if (status != TTD_OK)
            return status;
        count_call(&moves->reallocs.total, event);
        count_call(&group->counts, event);
    }
    return finder->hook.batch ? finder->hook.batch(finder->hook.context, batch) : TTD_OK;
}

/* Whether `a` is worse. */
static bool is_worse(const struct heap_chain *a, const struct heap_chain *b)
{
    if (a->bytes_copied != b->bytes_copied)
        return a->bytes_copied > b->bytes_copied;
    if (a->reallocs != b->reallocs)
        return a->reallocs > b->reallocs;
    return ttd_position_compare(a->first, b->first) < 0;
}

/* The chain's block is gone: the chain takes its place among the worst, if it is one of them. */
static enum ttd_status end_chain(struct heap_moves *moves, uint32_t user)
{
    const struct heap_chain *chain = &moves->chains[user - 1];
    size_t i = moves->worst_count;
    while (i > 0 && is_worse(chain, &moves->worst[i - 1]))
        i--;
    if (i < moves->worst_max) {
        if (moves->worst_count < moves->worst_max)
            moves->worst_count++;
        memmove(&moves->worst[i + 1], &moves->worst[i],
                (moves->worst_count - 1 - i) * sizeof *moves->worst);
        moves->worst[i] = *chain;
    }
    enum ttd_status status = grow_array((void **)&moves->unused, &moves->unused_capacity,
                                        moves->unused_count + 1, sizeof *moves->unused);
    if (status == TTD_OK)
        moves->unused[moves->unused_count++] = user;
    return status;
}

/* A chain begins with the first reallocation: most blocks never have one. */
static enum ttd_status new_chain(struct heap_moves *moves, const struct heap_block *old,
                                 uint32_t *user)
{
    if (moves->unused_count) {
        *user = moves->unused[--moves->unused_count];
    } else {
        enum ttd_status status = grow_array((void **)&moves->chains, &moves->chain_capacity,
                                            moves->chain_count + 1, sizeof *moves->chains);
        if (status != TTD_OK)
            return status;
        *user = (uint32_t)++moves->chain_count;
    }
    moves->chains[*user - 1] =
        (struct heap_chain){.start_size = old->size, .first = old->allocated};
    return TTD_OK;
}

/* A reallocation of a known block is complete. */
static enum ttd_status continue_chain(struct heap_moves *moves, const struct heap_effect *effect)
{
    const struct heap_block *old = effect->previous;
    struct heap_block *block = effect->block;
    enum ttd_status status = block->user ? TTD_OK : new_chain(moves, old, &block->user);
    struct heap_move_group *group = NULL;
    if (status == TTD_OK)
        status =
            heap_move_table_find(&moves->reallocs, heap_key_of_block(moves->split, block), &group);
    if (status != TTD_OK)
        return status;
    uint64_t copied = 0;
    struct heap_chain *chain = &moves->chains[block->user - 1];
    if (old->address != block->address) {
        copied = old->size < block->size ? old->size : block->size;
        chain->moved++;
    }
    chain->reallocs++;
    chain->bytes_copied += copied;
    chain->final_size = block->size;
    chain->last = block->allocated;
    chain->address = block->address;
    chain->stack = block->stack;
    group->counts.bytes_copied += copied;
    moves->reallocs.total.bytes_copied += copied;
    heap_growth_add(group, old->size, block->size);
    return TTD_OK;
}

static enum ttd_status see_effect(void *context, const struct heap_effect *effect)
{
    struct move_finder *finder = context;
    struct heap_moves *moves = finder->moves;
    enum ttd_status watched = regrowth_see(&finder->regrowths, effect);
    if (watched != TTD_OK)
        return watched;
    switch (effect->kind) {
    case HEAP_ACQUIRED:
        if (effect->previous)
            return continue_chain(moves, effect);
        /* A reallocation of a block that the trace does not know: its old size, and so the bytes
         * copied, are unknown. */
        if (effect->previous_address) {
            struct heap_move_group *group;
            struct heap_key key = heap_key_of_block(moves->split, effect->block);
            enum ttd_status status = heap_move_table_find(&moves->reallocs, key, &group);
            if (status != TTD_OK)
                return status;
            group->counts.unknown_old++;
            moves->reallocs.total.unknown_old++;
        }
        return TTD_OK;
    case HEAP_RELEASED:
        /* The release is half of a reallocation; its other half continues the chain. */
        if (effect->continues)
            return TTD_OK;
        break;
    case HEAP_DISCARDED:
    case HEAP_OVERLAPPED:
        break;
    case HEAP_DESTROYED:
    case HEAP_UNKNOWN_RELEASE:
        return TTD_OK;
    }
    return effect->block->user ? end_chain(moves, effect->block->user) : TTD_OK;
}

/* Ends the chains of all blocks that are still there. */
static enum ttd_status finish(struct heap_moves *moves, struct heap_replay *replay)
{
    size_t step = 0;
    const struct heap_block *block;
    enum ttd_status status = TTD_OK;
    heap_live_sweep(&replay->live);
    while (status == TTD_OK && (block = heap_live_each(&replay->live, &step)))
        status = block->user ? end_chain(moves, block->user) : TTD_OK;
    if (status == TTD_OK)
        status = replay->observer_status;
    heap_move_table_sort(&moves->reallocs);
    heap_move_table_sort(&moves->regrown);
    return status;
}

static enum ttd_status begin(struct move_finder *finder, const struct heap_trace *trace,
                             const struct heap_moves_options *options)
{
    struct heap_moves *moves = finder->moves;
    memset(moves, 0, sizeof *moves);
    heap_move_table_init(&moves->reallocs);
    heap_move_table_init(&moves->regrown);
    moves->split = options->split;
    finder->hook = trace->hook;
    regrowth_init(&finder->regrowths, &moves->regrown, options->split);
    /* One more, so that an insertion may push out the last one. */
    moves->worst = calloc(options->chains + 1, sizeof *moves->worst);
    moves->worst_max = options->chains;
    return moves->worst ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

enum ttd_status heap_moves_find(const struct heap_trace *trace,
                                const struct heap_moves_options *options, struct heap_moves *moves,
                                struct ttd_error *error)
{
    struct move_finder finder = {.moves = moves};
    struct heap_observer observer = {.context = &finder, .effect = see_effect};
    struct heap_route route = {.to = ttd_position_max(), .observer = &observer};
    struct heap_trace watched = *trace;
    struct heap_arrival arrival = {.has_losses = false};
    watched.hook = (struct heap_batch_hook){.context = &finder, .batch = see_batch};
    enum ttd_status status = begin(&finder, trace, options);
    if (status == TTD_OK)
        status = heap_replay_to(&arrival, &watched, &route, error);
    if (status == TTD_OK)
        status = finish(moves, &arrival.cursor.replay);
    heap_arrival_end(&arrival, &moves->outcome);
    regrowth_free(&finder.regrowths);
    if (status != TTD_OK)
        heap_moves_free(moves);
    return status;
}

void heap_moves_free(struct heap_moves *moves)
{
    heap_move_table_free(&moves->reallocs);
    heap_move_table_free(&moves->regrown);
    free(moves->worst);
    free(moves->chains);
    free(moves->unused);
    memset(moves, 0, sizeof *moves);
}
