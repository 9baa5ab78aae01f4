/* SPDX-License-Identifier: MIT */
/* Reallocations by call site, and chains of them by block: one pass finds both. */
#include "analyses/activity/moves.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash_map.h"
#include "base/table.h"
#include "heap/call.h"

/* The chains of reallocations whose blocks are live, by the event that acquired the block. */

struct chain_slot {
    uint64_t event;
    /** Number of the chain, from 1; 0 in an empty slot. */
    uint32_t chain;
};

/** All zero but for the key when empty. */
struct chain_table {
    /** The slots have no chains in them, so that a search passes several in one line of the cache.
     */
    struct chain_slot *slots;
    /** 0, or a power of two. */
    size_t capacity;
    size_t count;
    /** The chains, by number less 1. Of one that is not in use, `reallocs` is the number of the
     * next such one, or 0. */
    struct heap_chain *chains;
    size_t chain_count;
    size_t chain_capacity;
    /** Number of the first chain that is not in use, or 0. */
    uint32_t unused;
    struct hash_key key;
};

#define CAPACITY_MIN 64

static bool moves_is_empty(const struct chain_slot *slot)
{
    return !slot->chain;
}

static size_t moves_home_of(const struct chain_table *table, uint64_t event)
{
    return (size_t)hash_value(table->key, event) & (table->capacity - 1);
}

/* The slot of an event, or the empty one where it belongs. */
static size_t moves_chain_slot(const struct chain_table *table, uint64_t event)
{
    size_t slot = moves_home_of(table, event);
    while (!moves_is_empty(&table->slots[slot]) && table->slots[slot].event != event)
        slot = (slot + 1) & (table->capacity - 1);
    return slot;
}

static enum ttd_status moves_chain_table_grow(struct chain_table *table)
{
    struct chain_table larger = *table;
    larger.capacity = table->capacity ? 2 * table->capacity : CAPACITY_MIN;
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (!larger.slots)
        return TTD_ERROR_NO_MEMORY;
    pages_hint(larger.slots, larger.capacity * sizeof *larger.slots);
    for (size_t i = 0; i < table->capacity; i++) {
        if (!moves_is_empty(&table->slots[i]))
            larger.slots[moves_chain_slot(&larger, table->slots[i].event)] = table->slots[i];
    }
    free(table->slots);
    *table = larger;
    return TTD_OK;
}

/* Takes an unused chain and sets `number` to its number. */
static enum ttd_status moves_chain_obtain(struct chain_table *table, uint32_t *number)
{
    *number = table->unused;
    if (*number) {
        table->unused = (uint32_t)table->chains[*number - 1].reallocs;
        return TTD_OK;
    }
    enum ttd_status status = grow_array((void **)&table->chains, &table->chain_capacity,
                                        table->chain_count + 1, sizeof *table->chains);
    if (status == TTD_OK)
        *number = (uint32_t)++table->chain_count;
    return status;
}

/** Adds the chain of a block. The table has none of that event. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
static enum ttd_status moves_chain_table_add(struct chain_table *table, uint64_t event,
                                             const struct heap_chain *chain)
{
    uint32_t number;
    enum ttd_status status =
        table->count >= table->capacity / 2 ? moves_chain_table_grow(table) : TTD_OK;
    if (status == TTD_OK)
        status = moves_chain_obtain(table, &number);
    if (status != TTD_OK)
        return status;
    table->chains[number - 1] = *chain;
    table->slots[moves_chain_slot(table, event)] = (struct chain_slot){event, number};
    table->count++;
    return TTD_OK;
}

/* Empties a slot. Those behind it move into the hole where they may, so that a search need not pass
 * holes. */
static void moves_chain_slot_empty(struct chain_table *table, size_t hole)
{
    size_t mask = table->capacity - 1;
    for (size_t slot = (hole + 1) & mask; !moves_is_empty(&table->slots[slot]);
         slot = (slot + 1) & mask) {
        size_t distance = (slot - moves_home_of(table, table->slots[slot].event)) & mask;
        if (distance < ((slot - hole) & mask))
            continue;
        table->slots[hole] = table->slots[slot];
        hole = slot;
    }
    table->slots[hole] = (struct chain_slot){.chain = 0};
}

/** Removes the chain of a block, and sets `chain` to it. Returns whether there was one. */
static bool moves_chain_table_take(struct chain_table *table, uint64_t event,
                                   struct heap_chain *chain)
{
    if (!table->count)
        return false;
    size_t slot = moves_chain_slot(table, event);
    uint32_t number = table->slots[slot].chain;
    if (!number)
        return false;
    *chain = table->chains[number - 1];
    table->chains[number - 1].reallocs = table->unused;
    table->unused = number;
    moves_chain_slot_empty(table, slot);
    table->count--;
    return true;
}

/* Groups of moves: found by key, ordered, merged. */

void heap_move_table_init(struct heap_move_table *table)
{
    memset(table, 0, sizeof *table);
    map_init(&table->by_key);
}

void heap_move_table_free(struct heap_move_table *table)
{
    map_free(&table->by_key);
    free(table->groups);
    memset(table, 0, sizeof *table);
}

enum ttd_status heap_move_table_find(struct heap_move_table *table, struct heap_key key,
                                     struct heap_move_group **group)
{
    uint32_t index = map_get(&table->by_key, key.stack, key.property);
    if (index != MAP_NONE) {
        *group = &table->groups[index];
        return TTD_OK;
    }
    enum ttd_status status = grow_array((void **)&table->groups, &table->capacity, table->count + 1,
                                        sizeof *table->groups);
    if (status == TTD_OK)
        status = map_set(&table->by_key, key.stack, key.property, (uint32_t)table->count);
    if (status != TTD_OK)
        return status;
    *group = &table->groups[table->count++];
    **group = (struct heap_move_group){.key = key, .smallest = UINT64_MAX};
    return TTD_OK;
}

/* Keys differ, so that the order depends on nothing else. */
static int moves_compare_groups(const void *a, const void *b)
{
    const struct heap_move_group *x = a;
    const struct heap_move_group *y = b;
    uint64_t x_avoidable = heap_move_avoidable(&x->counts);
    uint64_t y_avoidable = heap_move_avoidable(&y->counts);
    if (x_avoidable != y_avoidable)
        return x_avoidable > y_avoidable ? -1 : 1;
    if (x->counts.copies.bytes_at_most != y->counts.copies.bytes_at_most)
        return x->counts.copies.bytes_at_most > y->counts.copies.bytes_at_most ? -1 : 1;
    if (x->counts.reallocs != y->counts.reallocs)
        return x->counts.reallocs > y->counts.reallocs ? -1 : 1;
    return heap_key_compare(x->key, y->key);
}

void heap_move_table_sort(struct heap_move_table *table)
{
    if (table->count)
        qsort(table->groups, table->count, sizeof *table->groups, moves_compare_groups);
}

void heap_move_add_avoidable(struct heap_move_counts *counts, int64_t bytes)
{
    if (__builtin_add_overflow(counts->avoidable, bytes, &counts->avoidable))
        counts->avoidable = bytes > 0 ? INT64_MAX : INT64_MIN;
}

static void moves_add_counts(struct heap_move_counts *sum, const struct heap_move_counts *counts)
{
    sum->reallocs += counts->reallocs;
    sum->moved += counts->moved;
    sum->in_place += counts->in_place;
    sum->from_null += counts->from_null;
    sum->to_zero += counts->to_zero;
    sum->failed += counts->failed;
    sum->unfinished += counts->unfinished;
    sum->unknown_old += counts->unknown_old;
    sum->copies.remapped += counts->copies.remapped;
    sum->copies.unknown += counts->copies.unknown;
    sum->copies.bytes = heap_add(sum->copies.bytes, counts->copies.bytes);
    sum->copies.bytes_at_most = heap_add(sum->copies.bytes_at_most, counts->copies.bytes_at_most);
    heap_move_add_avoidable(sum, counts->avoidable);
}

static void moves_merge_groups(void *target, const void *source)
{
    struct heap_move_group *sum = target;
    const struct heap_move_group *group = source;
    moves_add_counts(&sum->counts, &group->counts);
    heap_growth_merge(sum, group);
}

static struct heap_amount moves_group_amount(const void *record)
{
    const struct heap_move_counts *counts = &((const struct heap_move_group *)record)->counts;
    return (struct heap_amount){counts->copies.bytes_at_most, counts->copies.bytes_at_most,
                                counts->reallocs};
}

static void moves_recount(void *owner)
{
    struct heap_move_table *table = owner;
    table->total = (struct heap_move_counts){0};
    for (size_t i = 0; i < table->count; i++)
        moves_add_counts(&table->total, &table->groups[i].counts);
}

struct heap_site_table heap_move_site_table(struct heap_move_table *table)
{
    return (struct heap_site_table){.owner = table,
                                    .records = table->groups,
                                    .count = &table->count,
                                    .size = sizeof *table->groups,
                                    .merge = moves_merge_groups,
                                    .compare = moves_compare_groups,
                                    .amount_of = moves_group_amount,
                                    .recount = moves_recount};
}

struct move_finder {
    struct heap_moves *moves;
    const struct heap_islands *islands;
    /** With only_copies; else NULL. */
    const struct heap_replay *replay;
    struct regrowth_finder regrowths;
    struct chain_table chains;
};

static void moves_count_call(struct heap_move_counts *counts, const struct ttd_event *event)
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

/* One that failed or never returned has no effect to observe. */
static enum ttd_status moves_see_call(void *context, const struct ttd_event *event)
{
    struct move_finder *finder = context;
    struct heap_moves *moves = finder->moves;
    if (finder->islands &&
        !heap_islands_want(finder->islands, event->thread, ttd_event_position(event)))
        return TTD_OK;
    struct heap_move_group *group;
    struct heap_key key = heap_key_of(moves->split, event->stack, event->thread, event->heap);
    enum ttd_status status = heap_move_table_find(&moves->reallocs, key, &group);
    if (status != TTD_OK)
        return status;
    moves_count_call(&moves->reallocs.total, event);
    moves_count_call(&group->counts, event);
    return TTD_OK;
}

/* Whether `a` is worse. */
static bool moves_is_worse(const struct heap_chain *a, const struct heap_chain *b)
{
    if (a->avoidable != b->avoidable)
        return a->avoidable > b->avoidable;
    if (a->copies.bytes_at_most != b->copies.bytes_at_most)
        return a->copies.bytes_at_most > b->copies.bytes_at_most;
    if (a->reallocs != b->reallocs)
        return a->reallocs > b->reallocs;
    return ttd_position_compare(a->first, b->first) < 0;
}

/* The block is gone: its chain, if it has one, takes its place among the worst. */
static void moves_end_chain(struct move_finder *finder, const struct heap_block *block)
{
    struct heap_moves *moves = finder->moves;
    struct heap_chain chain;
    if (block->action != TTD_ACTION_REALLOC ||
        !moves_chain_table_take(&finder->chains, block->event, &chain))
        return;
    size_t i = moves->worst_count;
    while (i > 0 && moves_is_worse(&chain, &moves->worst[i - 1]))
        i--;
    if (i >= moves->worst_max)
        return;
    if (moves->worst_count < moves->worst_max)
        moves->worst_count++;
    memmove(&moves->worst[i + 1], &moves->worst[i],
            (moves->worst_count - 1 - i) * sizeof *moves->worst);
    moves->worst[i] = chain;
}

/* The bytes that a chain would not have copied if it had doubled its block each time: then it
 * copies no more than it gains. */
static uint64_t moves_avoidable_of(const struct heap_chain *chain)
{
    uint64_t gained = chain->largest_size - chain->start_size;
    return chain->copies.bytes_at_most > gained ? chain->copies.bytes_at_most - gained : 0;
}

static void moves_add_copy(struct heap_copies *copies, enum heap_move move, uint64_t bytes)
{
    copies->remapped += move == HEAP_MOVE_REMAPPED;
    copies->unknown += move == HEAP_MOVE_UNKNOWN;
    copies->bytes = heap_add(copies->bytes, move == HEAP_MOVE_COPIED ? bytes : 0);
    copies->bytes_at_most = heap_add(copies->bytes_at_most, move == HEAP_MOVE_REMAPPED ? 0 : bytes);
}

/* Adds the bytes that a call has copied to up to three sums. `bytes`: 0 if the old block is not
 * known. */
static void moves_add_copies(const struct heap_effect *effect, uint64_t bytes,
                             struct heap_copies *const sums[], size_t count)
{
    enum heap_move move = heap_move_of_effect(effect);
    for (size_t i = 0; i < count && effect->previous_address != effect->address; i++)
        moves_add_copy(sums[i], move, bytes);
}

/* The difference of two estimates. */
static int64_t moves_difference(uint64_t after, uint64_t before)
{
    int64_t result;
    bool is_large = __builtin_sub_overflow(after, before, &result);
    return !is_large ? result : after > before ? INT64_MAX : INT64_MIN;
}

/* Adds a reallocation of a known block to its group and its chain. */
static enum ttd_status moves_add_realloc(struct move_finder *finder,
                                         const struct heap_effect *effect, struct heap_chain *chain)
{
    const struct heap_block *old = effect->previous, *block = effect->block;
    struct heap_moves *moves = finder->moves;
    struct heap_move_group *group;
    enum ttd_status status =
        heap_move_table_find(&moves->reallocs, heap_key_of_block(moves->split, block), &group);
    if (status != TTD_OK)
        return status;
    uint64_t before = moves_avoidable_of(chain);
    struct heap_move_counts *total = &moves->reallocs.total;
    struct heap_copies *sums[] = {&chain->copies, &group->counts.copies, &total->copies};
    moves_add_copies(effect, old->size < block->size ? old->size : block->size, sums, 3);
    chain->reallocs++;
    chain->moved += old->address != block->address;
    chain->final_size = block->size;
    if (block->size > chain->largest_size)
        chain->largest_size = block->size;
    chain->last = block->allocated;
    chain->address = block->address;
    chain->stack = block->stack;
    chain->avoidable = moves_avoidable_of(chain);
    heap_move_add_avoidable(&group->counts, moves_difference(chain->avoidable, before));
    heap_move_add_avoidable(total, moves_difference(chain->avoidable, before));
    heap_growth_add(group, old->size, block->size);
    return TTD_OK;
}

/* A reallocation of a known block is complete. A chain begins with the first one that counts: most
 * blocks never have any. */
static enum ttd_status moves_continue_chain(struct move_finder *finder,
                                            const struct heap_effect *effect)
{
    const struct heap_block *old = effect->previous;
    const struct heap_block *block = effect->block;
    struct heap_chain chain;
    bool counts = heap_islands_want_block(finder->islands, block);
    bool has_chain = old->action == TTD_ACTION_REALLOC &&
                     moves_chain_table_take(&finder->chains, old->event, &chain);
    if (!has_chain && !counts)
        return TTD_OK;
    if (!has_chain)
        chain = (struct heap_chain){
            .start_size = old->size, .largest_size = old->size, .first = old->allocated};
    enum ttd_status status = counts ? moves_add_realloc(finder, effect, &chain) : TTD_OK;
    return status == TTD_OK ? moves_chain_table_add(&finder->chains, block->event, &chain) : status;
}

static enum ttd_status moves_see_effect(void *context, const struct heap_effect *effect)
{
    struct move_finder *finder = context;
    struct heap_moves *moves = finder->moves;
    enum ttd_status watched = regrowth_see(&finder->regrowths, effect);
    if (watched != TTD_OK)
        return watched;
    switch (effect->kind) {
    case HEAP_ACQUIRED:
        if (effect->previous)
            return moves_continue_chain(finder, effect);
        /* A reallocation of a block that the trace does not know: its old size, and so the bytes
         * copied, are unknown. */
        if (effect->previous_address && heap_islands_want_block(finder->islands, effect->block)) {
            struct heap_move_group *group;
            struct heap_key key = heap_key_of_block(moves->split, effect->block);
            enum ttd_status status = heap_move_table_find(&moves->reallocs, key, &group);
            if (status != TTD_OK)
                return status;
            struct heap_move_counts *total = &moves->reallocs.total;
            struct heap_copies *sums[] = {&group->counts.copies, &total->copies};
            moves_add_copies(effect, 0, sums, 2);
            group->counts.unknown_old++;
            total->unknown_old++;
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
    moves_end_chain(finder, effect->block);
    return TTD_OK;
}

static enum ttd_status moves_see_alloc(void *context, const struct ttd_event *event)
{
    struct move_finder *finder = context;
    return regrowth_see_alloc(&finder->regrowths, event);
}

static enum ttd_status moves_see_free(void *context, const struct ttd_event *event,
                                      const struct heap_block *block)
{
    struct move_finder *finder = context;
    enum ttd_status status = regrowth_see_free(&finder->regrowths, event, block);
    if (status == TTD_OK && block->action == TTD_ACTION_REALLOC)
        moves_end_chain(finder, block);
    return status;
}

static const struct heap_plain_observer moves_plain = {moves_see_alloc, moves_see_free};

/* Counts a call of a search for copies only, before it has its effects: the old block is live. */
static enum ttd_status moves_see_only_call(void *context, const struct ttd_event *event)
{
    const struct move_finder *finder = context;
    struct heap_moves *moves = finder->moves;
    struct heap_move_group *group;
    struct heap_key key = heap_key_of(moves->split, event->stack, event->thread, event->heap);
    enum ttd_status status = heap_move_table_find(&moves->reallocs, key, &group);
    if (status != TTD_OK)
        return status;
    struct heap_move_counts *sums[] = {&moves->reallocs.total, &group->counts};
    bool has_old = event->result && event->address && event->base_address;
    const struct heap_block *old = has_old ? heap_replay_given(finder->replay, event) : NULL;
    uint64_t bytes = !old ? 0 : old->size < event->size ? old->size : event->size;
    for (size_t i = 0; i < 2; i++) {
        moves_count_call(sums[i], event);
        sums[i]->unknown_old += has_old && !old;
        if (has_old && event->base_address != event->address)
            moves_add_copy(
                &sums[i]->copies,
                heap_move_of(event->api, event->flags, event->base_address, event->address), bytes);
    }
    return TTD_OK;
}

static void moves_begin_only(void *context, const struct heap_arrival *arrival)
{
    struct move_finder *finder = context;
    finder->replay = &arrival->cursor.replay;
}

/* Ends the chains of all blocks that are still there. */
static enum ttd_status moves_finish(void *context, struct heap_arrival *arrival,
                                    struct ttd_error *error)
{
    struct move_finder *finder = context;
    struct heap_moves *moves = finder->moves;
    size_t step = 0;
    const struct heap_block *block;
    (void)error;
    moves->outcome = heap_arrival_outcome(arrival);
    while (!finder->replay && (block = heap_live_each(&arrival->cursor.replay.live, &step)))
        moves_end_chain(finder, block);
    heap_move_table_sort(&moves->reallocs);
    heap_move_table_sort(&moves->regrown);
    return TTD_OK;
}

enum ttd_status heap_moves_watch(struct heap_moves *moves, const struct heap_moves_options *options,
                                 struct heap_pass *pass)
{
    memset(moves, 0, sizeof *moves);
    heap_move_table_init(&moves->reallocs);
    heap_move_table_init(&moves->regrown);
    moves->split = options->split;
    /* One more, so that an insertion may push out the last one. */
    moves->worst = calloc(options->chains + 1, sizeof *moves->worst);
    moves->worst_max = options->chains;
    moves->finder = calloc(1, sizeof *moves->finder);
    if (!moves->worst || !moves->finder)
        return TTD_ERROR_NO_MEMORY;
    moves->finder->moves = moves;
    moves->finder->islands = options->islands;
    moves->finder->chains = (struct chain_table){.key = hash_key_new()};
    regrowth_init(&moves->finder->regrowths, &moves->regrown, options->split, options->islands);
    struct heap_watcher watcher = {
        .observer = {.context = moves->finder,
                     .effect = moves_see_effect,
                     .call = moves_see_call,
                     .plain = &moves_plain,
                     .unwanted_calls = ~HEAP_CALL_BIT(TTD_ACTION_REALLOC)},
        .to = ttd_position_max(),
        .is_deferred = true,
        .finish = moves_finish};
    if (options->only_copies) {
        watcher.observer.effect = NULL;
        watcher.observer.plain = NULL;
        watcher.observer.call = moves_see_only_call;
        watcher.is_deferred = false;
        watcher.begin = moves_begin_only;
    }
    heap_pass_add(pass, &watcher);
    return TTD_OK;
}

void heap_moves_end(struct heap_moves *moves)
{
    if (!moves->finder)
        return;
    free(moves->finder->chains.slots);
    free(moves->finder->chains.chains);
    moves->finder->chains = (struct chain_table){.count = 0};
    regrowth_free(&moves->finder->regrowths);
    free(moves->finder);
    moves->finder = NULL;
}

enum ttd_status heap_moves_find(const struct heap_trace *trace,
                                const struct heap_moves_options *options, struct heap_moves *moves,
                                struct ttd_error *error)
{
    struct heap_pass pass = {.count = 0};
    enum ttd_status status = heap_moves_watch(moves, options, &pass);
    if (status == TTD_OK)
        status = heap_pass_run(&pass, trace, error);
    heap_moves_end(moves);
    if (status != TTD_OK)
        heap_moves_free(moves);
    return status;
}

void heap_moves_free(struct heap_moves *moves)
{
    heap_moves_end(moves);
    heap_move_table_free(&moves->reallocs);
    heap_move_table_free(&moves->regrown);
    free(moves->worst);
    memset(moves, 0, sizeof *moves);
}
