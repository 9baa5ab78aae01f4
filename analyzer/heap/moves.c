/* SPDX-License-Identifier: MIT */
#include "heap/moves.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "heap/growth.h"

typedef struct move_finder {
    heap_moves *moves;
    const heap_batch_hook *hook;
} move_finder;

static ttd_status group_of(heap_moves *moves, heap_key key, heap_move_group **group)
{
    uint32_t index = map_get(&moves->by_key, key.stack, key.other);
    if (index != MAP_NONE) {
        *group = &moves->groups[index];
        return TTD_OK;
    }
    ttd_status status = grow_array((void **)&moves->groups, &moves->group_capacity,
                                   moves->group_count + 1, sizeof *moves->groups);
    if (status == TTD_OK)
        status = map_set(&moves->by_key, key.stack, key.other, (uint32_t)moves->group_count);
    if (status != TTD_OK)
        return status;
    *group = &moves->groups[moves->group_count++];
    **group = (heap_move_group){.key = key, .smallest = UINT64_MAX};
    return TTD_OK;
}

static void count_call(heap_move_counts *counts, const ttd_event *event)
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

static ttd_status see_batch(void *context, const ttd_batch *batch)
{
    move_finder *mover = context;
    heap_moves *moves = mover->moves;
    if (batch->kind == TTD_KIND_LOSSES)
        heap_losses_add(&moves->losses, batch);
    for (size_t i = 0; batch->kind == TTD_KIND_EVENTS && i < batch->count; i++) {
        const ttd_event *event = &batch->u.events[i];
        if (event->action != TTD_ACTION_REALLOC)
            continue;
        heap_move_group *group;
        heap_key key = heap_key_of(moves->split, event->stack, event->thread, event->heap);
        ttd_status status = group_of(moves, key, &group);
        if (status != TTD_OK)
            return status;
        count_call(&moves->total, event);
        count_call(&group->counts, event);
    }
    return mover->hook ? mover->hook->batch(mover->hook->context, batch) : TTD_OK;
}

/* Whether `a` is worse. */
static bool is_worse(const heap_chain *a, const heap_chain *b)
{
    if (a->bytes_copied != b->bytes_copied)
        return a->bytes_copied > b->bytes_copied;
    if (a->reallocs != b->reallocs)
        return a->reallocs > b->reallocs;
    return ttd_position_compare(a->first, b->first) < 0;
}

/* The chain's block is gone: the chain takes its place among the worst, if it is one of them. */
static ttd_status end_chain(heap_moves *moves, uint32_t user)
{
    const heap_chain *chain = &moves->chains[user - 1];
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
    ttd_status status = grow_array((void **)&moves->unused, &moves->unused_capacity,
                                   moves->unused_count + 1, sizeof *moves->unused);
    if (status == TTD_OK)
        moves->unused[moves->unused_count++] = user;
    return status;
}

static ttd_status new_chain(heap_moves *moves, const heap_block *old, uint32_t *user)
{
    if (moves->unused_count) {
        *user = moves->unused[--moves->unused_count];
    } else {
        ttd_status status = grow_array((void **)&moves->chains, &moves->chain_capacity,
                                       moves->chain_count + 1, sizeof *moves->chains);
        if (status != TTD_OK)
            return status;
        *user = (uint32_t)++moves->chain_count;
    }
    moves->chains[*user - 1] = (heap_chain){.start_size = old->size, .first = old->allocated};
    return TTD_OK;
}

/* A reallocation of a known block is complete. */
static ttd_status continue_chain(heap_moves *moves, const heap_effect *effect)
{
    const heap_block *old = effect->previous;
    heap_block *block = effect->block;
    ttd_status status = block->user ? TTD_OK : new_chain(moves, old, &block->user);
    heap_move_group *group = NULL;
    if (status == TTD_OK)
        status = group_of(moves, heap_key_of_block(moves->split, block), &group);
    if (status != TTD_OK)
        return status;
    uint64_t copied = 0;
    heap_chain *chain = &moves->chains[block->user - 1];
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
    moves->total.bytes_copied += copied;
    heap_growth_add(group, old->size, block->size);
    return TTD_OK;
}

static ttd_status see_effect(void *context, const heap_effect *effect)
{
    heap_moves *moves = ((move_finder *)context)->moves;
    switch (effect->kind) {
    case HEAP_ACQUIRED:
        if (effect->previous)
            return continue_chain(moves, effect);
        if (effect->previous_address) {
            heap_move_group *group;
            heap_key key = heap_key_of_block(moves->split, effect->block);
            ttd_status status = group_of(moves, key, &group);
            if (status != TTD_OK)
                return status;
            group->counts.unknown_old++;
            moves->total.unknown_old++;
        }
        return TTD_OK;
    case HEAP_RELEASED:
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

static int compare(const void *a, const void *b)
{
    const heap_move_group *x = a;
    const heap_move_group *y = b;
    if (x->counts.bytes_copied != y->counts.bytes_copied)
        return x->counts.bytes_copied > y->counts.bytes_copied ? -1 : 1;
    if (x->counts.reallocs != y->counts.reallocs)
        return x->counts.reallocs > y->counts.reallocs ? -1 : 1;
    return heap_key_compare(x->key, y->key);
}

/* Ends the chains of all blocks that are still there. */
static ttd_status finish(heap_moves *moves, heap_cursor *cursor)
{
    size_t step = 0;
    const heap_block *block;
    ttd_status status = TTD_OK;
    heap_live_sweep(&cursor->replay.live);
    while (status == TTD_OK && (block = heap_live_each(&cursor->replay.live, &step)))
        status = block->user ? end_chain(moves, block->user) : TTD_OK;
    if (status == TTD_OK)
        status = cursor->replay.observer_status;
    moves->counts = cursor->replay.counts;
    moves->position = cursor->replay.position;
    moves->truncated = cursor->truncated;
    moves->error = cursor->error;
    if (moves->group_count)
        qsort(moves->groups, moves->group_count, sizeof *moves->groups, compare);
    return status;
}

ttd_status heap_moves_find(ttd_reader *reader, size_t chains, heap_split split,
                           const heap_batch_hook *hook, heap_moves *moves, ttd_error *error)
{
    memset(moves, 0, sizeof *moves);
    map_init(&moves->by_key);
    moves->split = split;
    /* One more, so that an insertion may push out the last one. */
    moves->worst = calloc(chains + 1, sizeof *moves->worst);
    moves->worst_max = chains;
    move_finder mover = {moves, hook};
    heap_observer observer = {.context = &mover, .effect = see_effect};
    heap_batch_hook own = {&mover, see_batch};
    heap_cursor cursor = {0};
    ttd_status status = moves->worst ? TTD_OK : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK)
        status = heap_cursor_init(&cursor, reader, HEAP_CURSOR_KINDS, NULL, &observer, &own);
    if (status == TTD_OK)
        status = heap_cursor_seek(&cursor, ttd_position_max(), error);
    if (status == TTD_OK)
        status = finish(moves, &cursor);
    heap_cursor_free(&cursor);
    if (status != TTD_OK)
        heap_moves_free(moves);
    return status;
}

void heap_moves_free(heap_moves *moves)
{
    map_free(&moves->by_key);
    free(moves->groups);
    free(moves->worst);
    free(moves->chains);
    free(moves->unused);
    memset(moves, 0, sizeof *moves);
}

static void add_counts(heap_move_counts *sum, const heap_move_counts *counts)
{
    sum->reallocs += counts->reallocs;
    sum->moved += counts->moved;
    sum->in_place += counts->in_place;
    sum->from_null += counts->from_null;
    sum->to_zero += counts->to_zero;
    sum->failed += counts->failed;
    sum->unfinished += counts->unfinished;
    sum->unknown_old += counts->unknown_old;
    sum->bytes_copied += counts->bytes_copied;
}

static void merge(void *into, const void *from)
{
    heap_move_group *sum = into;
    const heap_move_group *group = from;
    add_counts(&sum->counts, &group->counts);
    heap_growth_merge(sum, group);
}

static heap_amount amount(const void *item)
{
    const heap_move_counts *counts = &((const heap_move_group *)item)->counts;
    return (heap_amount){counts->bytes_copied, counts->bytes_copied, counts->reallocs};
}

static void recount(void *owner)
{
    heap_moves *moves = owner;
    moves->total = (heap_move_counts){0};
    for (size_t i = 0; i < moves->group_count; i++)
        add_counts(&moves->total, &moves->groups[i].counts);
}

heap_rows heap_moves_rows(heap_moves *moves)
{
    return (heap_rows){.owner = moves,
                       .items = moves->groups,
                       .count = &moves->group_count,
                       .size = sizeof *moves->groups,
                       .merge = merge,
                       .compare = compare,
                       .amount = amount,
                       .recount = recount};
}
