/* SPDX-License-Identifier: MIT */
#include "analyses/chronicle/chronicle.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/sort.h"
#include "common/search.h"

/* Blocks in the order of their addresses. */

static void chronicle_sort_keys(const struct chronicle *chronicle, struct sort_key *keys,
                                struct sort_key *spare)
{
    for (size_t i = 0; i < chronicle->block_count; i++)
        keys[i] = (struct sort_key){chronicle->blocks[i].address, (uint32_t)i};
    sort_keys(keys, spare, chronicle->block_count);
}

enum ttd_status chronicle_sort(struct chronicle *chronicle)
{
    if (chronicle->by_address)
        return TTD_OK;
    size_t count = chronicle->block_count + 1;
    struct sort_key *keys = malloc(count * sizeof *keys);
    struct sort_key *spare = malloc(count * sizeof *spare);
    chronicle->by_address = malloc(count * sizeof *chronicle->by_address);
    chronicle->sorted_lives = malloc(count * sizeof *chronicle->sorted_lives);
    bool has_memory = keys && spare && chronicle->by_address && chronicle->sorted_lives;
    if (has_memory)
        chronicle_sort_keys(chronicle, keys, spare);
    for (size_t i = 0; has_memory && i < chronicle->block_count; i++) {
        chronicle->by_address[i] = keys[i].index;
        chronicle->sorted_lives[i] = chronicle->lives[keys[i].index];
    }
    if (!has_memory) {
        free(chronicle->by_address);
        chronicle->by_address = NULL;
    }
    free(keys);
    free(spare);
    return has_memory ? TTD_OK : TTD_ERROR_NO_MEMORY;
}

void chronicle_each_live(const struct chronicle *chronicle, uint32_t moment,
                         chronicle_live_visit visit, void *context)
{
    for (size_t i = 0; i < chronicle->block_count; i++) {
        if (chronicle_is_live(chronicle->sorted_lives[i], moment) &&
            !visit(context, chronicle->by_address[i]))
            break;
    }
}

/* Finding moments, and the changes between two of them. */

uint32_t chronicle_find(const struct chronicle *chronicle, struct ttd_position position)
{
    size_t low = 0, high = chronicle->effect_count;
    SEARCH_SORTED(low, high, middle,
                  ttd_position_compare(chronicle->effects[middle].position, position) <= 0);
    return (uint32_t)low;
}

/* The last moment at a position that some effects of which are among the first `count`. */
static uint32_t chronicle_whole(const struct chronicle *chronicle, size_t count)
{
    return count ? chronicle_find(chronicle, chronicle->effects[count - 1].position) : 0;
}

uint32_t chronicle_find_event(const struct chronicle *chronicle, uint64_t event)
{
    /* Events are in the order of their effects, but for the second ones of reallocations. */
    size_t low = 0, high = chronicle->effect_count;
    SEARCH_SORTED(low, high, middle, chronicle->effects[middle].event <= event);
    return chronicle_whole(chronicle, low);
}

uint32_t chronicle_find_time(const struct chronicle *chronicle, uint64_t time)
{
    size_t low = 0, high = chronicle->time_count;
    SEARCH_SORTED(low, high, middle, chronicle->times[middle].time <= time);
    bool is_last = low == chronicle->time_count;
    return chronicle_whole(chronicle,
                           is_last ? chronicle->effect_count : chronicle->times[low].effect);
}

uint64_t chronicle_wall_time(const struct chronicle *chronicle, uint32_t moment)
{
    size_t low = 0, high = chronicle->time_count;
    SEARCH_SORTED(low, high, middle, chronicle->times[middle].effect < moment);
    return low ? chronicle->times[low - 1].time : 0;
}

struct ttd_position chronicle_position(const struct chronicle *chronicle, uint32_t moment)
{
    return moment ? chronicle->effects[moment - 1].position : ttd_position_min();
}

uint32_t chronicle_before(const struct chronicle *chronicle, uint32_t moment)
{
    struct ttd_position position = chronicle_position(chronicle, moment);
    while (moment && ttd_position_compare(chronicle->effects[moment - 1].position, position) == 0)
        moment--;
    return moment;
}

uint32_t chronicle_after(const struct chronicle *chronicle, uint32_t moment)
{
    return moment < chronicle->effect_count ? chronicle_whole(chronicle, (size_t)moment + 1)
                                            : moment;
}

void chronicle_each(const struct chronicle *chronicle, uint32_t from, uint32_t to,
                    chronicle_visit visit, void *context)
{
    for (uint32_t i = from; i < to; i++) {
        uint32_t subject = chronicle->effects[i].subject;
        if (chronicle->kinds[i] != CHRONICLE_DESTROYED) {
            visit(context, i, &chronicle->blocks[subject]);
            continue;
        }
        const struct chronicle_destruction *destruction = &chronicle->destructions[subject];
        for (uint32_t k = destruction->first; k < destruction->end; k++)
            visit(context, i, &chronicle->blocks[chronicle->ended[k]]);
    }
}

/* Effects and blocks are numbered with 32 bits. */
#define COUNT_MAX (UINT32_MAX - 2)

static enum ttd_status chronicle_grow_effects(struct chronicle *chronicle)
{
    size_t needed = chronicle->effect_count + 1;
    size_t capacity = chronicle->effect_capacity;
    if (needed <= capacity)
        return TTD_OK;
    if (needed > COUNT_MAX)
        return TTD_ERROR_LIMIT;
    enum ttd_status status =
        grow_array((void **)&chronicle->effects, &capacity, needed, sizeof *chronicle->effects);
    size_t kind_capacity = chronicle->effect_capacity;
    if (status == TTD_OK)
        status = grow_array((void **)&chronicle->kinds, &kind_capacity, needed,
                            sizeof *chronicle->kinds);
    if (status == TTD_OK)
        chronicle->effect_capacity = capacity;
    return status;
}

static enum ttd_status chronicle_add_effect(struct chronicle *chronicle,
                                            const struct heap_effect *effect,
                                            enum chronicle_kind kind, uint32_t subject)
{
    enum ttd_status status = chronicle_grow_effects(chronicle);
    if (status == TTD_OK &&
        (!chronicle->time_count ||
         chronicle->times[chronicle->time_count - 1].time != chronicle->wall_time)) {
        status = grow_array((void **)&chronicle->times, &chronicle->time_capacity,
                            chronicle->time_count + 1, sizeof *chronicle->times);
        if (status == TTD_OK)
            chronicle->times[chronicle->time_count++] =
                (struct chronicle_time){(uint32_t)chronicle->effect_count, chronicle->wall_time};
    }
    if (status != TTD_OK)
        return status;
    chronicle->kinds[chronicle->effect_count] = (uint8_t)kind;
    chronicle->effects[chronicle->effect_count++] =
        (struct chronicle_effect){effect->position, (uint32_t)effect->event, subject};
    return TTD_OK;
}

static enum ttd_status chronicle_grow_blocks(struct chronicle *chronicle)
{
    size_t needed = chronicle->block_count + 1;
    size_t capacity = chronicle->block_capacity;
    if (needed <= capacity)
        return TTD_OK;
    enum ttd_status status =
        grow_array((void **)&chronicle->blocks, &capacity, needed, sizeof *chronicle->blocks);
    size_t life_capacity = chronicle->block_capacity;
    if (status == TTD_OK)
        status = grow_array((void **)&chronicle->lives, &life_capacity, needed,
                            sizeof *chronicle->lives);
    if (status == TTD_OK)
        chronicle->block_capacity = capacity;
    return status;
}

/* The chronicle's block of a live one is its `user` member. */
static enum ttd_status chronicle_acquire(struct chronicle *chronicle,
                                         const struct heap_effect *effect)
{
    struct heap_block *block = effect->block;
    enum ttd_status status = chronicle_grow_blocks(chronicle);
    if (status != TTD_OK)
        return status;
    block->user = (uint32_t)chronicle->block_count++;
    chronicle->blocks[block->user] = (struct chronicle_block){
        .address = block->address,
        .size = block->size,
        .stack = block->stack,
        .thread = block->thread,
        .heap = block->heap,
        .is_nested = heap_parents_get(chronicle->parents, block->heap) != TTD_NONE};
    chronicle->lives[block->user] =
        (struct chronicle_life){(uint32_t)chronicle->effect_count, CHRONICLE_NONE};
    return chronicle_add_effect(chronicle, effect, CHRONICLE_ACQUIRED, block->user);
}

static enum ttd_status chronicle_release(struct chronicle *chronicle,
                                         const struct heap_effect *effect)
{
    uint32_t block = effect->block->user;
    chronicle->lives[block].end = (uint32_t)chronicle->effect_count;
    enum chronicle_kind kind =
        effect->kind == HEAP_OVERLAPPED ? CHRONICLE_OVERLAPPED : CHRONICLE_RELEASED;
    return chronicle_add_effect(chronicle, effect, kind, block);
}

static enum ttd_status chronicle_destroy_heap(struct chronicle *chronicle,
                                              const struct heap_effect *effect)
{
    enum ttd_status status =
        grow_array((void **)&chronicle->destructions, &chronicle->destruction_capacity,
                   chronicle->destruction_count + 1, sizeof *chronicle->destructions);
    if (status != TTD_OK)
        return status;
    uint32_t index = (uint32_t)chronicle->destruction_count++;
    chronicle->destructions[index] =
        (struct chronicle_destruction){(uint32_t)chronicle->effect_count, effect->heap, 0, 0};
    return chronicle_add_effect(chronicle, effect, CHRONICLE_DESTROYED, index);
}

/* A block of a heap that was destroyed at the effect's position. */
static void chronicle_discard(struct chronicle *chronicle, const struct heap_effect *effect)
{
    size_t low = 0, high = chronicle->destruction_count;
    SEARCH_SORTED(
        low, high, middle,
        ttd_position_compare(chronicle->effects[chronicle->destructions[middle].effect].position,
                             effect->position) < 0);
    while (low < chronicle->destruction_count &&
           chronicle->destructions[low].heap != effect->block->heap)
        low++;
    if (low < chronicle->destruction_count)
        chronicle->lives[effect->block->user].end = chronicle->destructions[low].effect;
}

static enum ttd_status chronicle_see_effect(void *context, const struct heap_effect *effect)
{
    struct chronicle *chronicle = context;
    switch (effect->kind) {
    case HEAP_ACQUIRED:
        return chronicle_acquire(chronicle, effect);
    case HEAP_RELEASED:
    case HEAP_OVERLAPPED:
        return chronicle_release(chronicle, effect);
    case HEAP_DESTROYED:
        return chronicle_destroy_heap(chronicle, effect);
    case HEAP_DISCARDED:
        chronicle_discard(chronicle, effect);
        return TTD_OK;
    case HEAP_UNKNOWN_RELEASE:
        break;
    }
    return TTD_OK;
}

static enum ttd_status chronicle_see_call(void *context, const struct ttd_event *event)
{
    struct chronicle *chronicle = context;
    if (event->wall_time > chronicle->wall_time)
        chronicle->wall_time = event->wall_time;
    return TTD_OK;
}

/* Whether a block ended with its heap. */
static const struct chronicle_effect *chronicle_destruction_of(const struct chronicle *chronicle,
                                                               size_t block)
{
    uint32_t end = chronicle->lives[block].end;
    bool is_ended = end != CHRONICLE_NONE && chronicle->kinds[end] == CHRONICLE_DESTROYED;
    return is_ended ? &chronicle->effects[end] : NULL;
}

/* Lists the blocks that each destruction ended. */
static enum ttd_status chronicle_list_ended(struct chronicle *chronicle)
{
    struct chronicle_destruction *destructions = chronicle->destructions;
    const struct chronicle_effect *destruction;
    uint32_t count = 0;
    for (size_t i = 0; i < chronicle->block_count; i++) {
        destruction = chronicle_destruction_of(chronicle, i);
        if (destruction)
            destructions[destruction->subject].end++;
    }
    for (size_t i = 0; i < chronicle->destruction_count; i++) {
        destructions[i].first = count;
        count += destructions[i].end;
        destructions[i].end = destructions[i].first;
    }
    chronicle->ended = malloc((count + 1) * sizeof *chronicle->ended);
    if (!chronicle->ended)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < chronicle->block_count; i++) {
        destruction = chronicle_destruction_of(chronicle, i);
        if (destruction)
            chronicle->ended[destructions[destruction->subject].end++] = (uint32_t)i;
    }
    return TTD_OK;
}

/* Makes room for as many effects as events, assuming that half acquire blocks; without it, or where
 * there are more, arrays grow as they are filled, and are copied. */
static void chronicle_reserve(struct chronicle *chronicle, size_t events)
{
    size_t blocks = events / 2 + 1;
    chronicle->effects = malloc(events * sizeof *chronicle->effects);
    chronicle->kinds = malloc(events);
    if (chronicle->effects && chronicle->kinds)
        chronicle->effect_capacity = events;
    chronicle->blocks = malloc(blocks * sizeof *chronicle->blocks);
    chronicle->lives = malloc(blocks * sizeof *chronicle->lives);
    if (chronicle->blocks && chronicle->lives)
        chronicle->block_capacity = blocks;
}

enum ttd_status chronicle_make(struct chronicle *chronicle, const struct heap_trace *trace,
                               uint64_t events, struct ttd_error *error)
{
    *chronicle = (struct chronicle){.effect_count = 0};
    if (events && events < COUNT_MAX / 64)
        chronicle_reserve(chronicle, (size_t)(events + events / 16));
    struct heap_observer observer = {.context = chronicle,
                                     .effect = chronicle_see_effect,
                                     .call = chronicle_see_call,
                                     .unwanted = HEAP_EFFECT_BIT(HEAP_UNKNOWN_RELEASE)};
    struct heap_route route = {.to = ttd_position_max(), .observer = &observer};
    struct heap_arrival *arrival = calloc(1, sizeof *arrival);
    if (!arrival)
        return TTD_ERROR_NO_MEMORY;
    chronicle->parents = &arrival->cursor.replay.live.parents;
    enum ttd_status status = heap_replay_to(arrival, trace, &route, error);
    if (status == TTD_OK) {
        /* Passes on the remaining blocks of destroyed heaps. */
        heap_live_discard_stale(&arrival->cursor.replay.live);
        status = arrival->cursor.replay.observer_status;
    }
    if (status == TTD_OK)
        status = chronicle_list_ended(chronicle);
    chronicle->parents = NULL;
    chronicle->gaps = arrival->gaps;
    arrival->gaps = (struct heap_gaps){.count = 0};
    heap_arrival_free(arrival);
    free(arrival);
    return status;
}

void chronicle_free(struct chronicle *chronicle)
{
    free(chronicle->effects);
    free(chronicle->kinds);
    free(chronicle->blocks);
    free(chronicle->lives);
    free(chronicle->destructions);
    free(chronicle->ended);
    free(chronicle->times);
    free(chronicle->by_address);
    free(chronicle->sorted_lives);
    heap_gaps_free(&chronicle->gaps);
    *chronicle = (struct chronicle){.effect_count = 0};
}

struct adding {
    const struct chronicle *chronicle;
    struct chronicle_sums *sums;
    struct chronicle_filter filter;
    enum ttd_status status;
};

/* A position is over: the state at it counts for the peak. */
static void chronicle_settle_sums(struct heap_tick *tick)
{
    if (heap_sum_is_less(tick->peak, tick->live.bytes))
        tick->peak = tick->live.bytes;
}

static void chronicle_move_sums(struct heap_tick *tick, const struct chronicle_effect *effect)
{
    if (ttd_position_compare(tick->position, effect->position) != 0)
        chronicle_settle_sums(tick);
    tick->position = effect->position;
    if (effect->event > tick->event)
        tick->event = effect->event;
}

static void chronicle_add_to_tick(struct heap_tick *tick, const struct chronicle_block *block,
                                  bool begins)
{
    if (begins) {
        tick->allocations++;
        heap_sum_add(&tick->allocated, block->size);
    } else {
        tick->releases++;
    }
    if (block->is_nested)
        return;
    tick->live.blocks += begins ? 1 : -UINT64_C(1);
    if (begins)
        heap_sum_add(&tick->live.bytes, block->size);
    else
        heap_sum_take(&tick->live.bytes, block->size);
}

static void chronicle_sum_block(void *context, uint32_t effect, const struct chronicle_block *block)
{
    struct adding *adding = context;
    bool begins = adding->chronicle->kinds[effect] == CHRONICLE_ACQUIRED;
    const ttd_id keys[HEAP_TICK_KEYS] = {[HEAP_TICK_BY_STACK] = block->stack,
                                         [HEAP_TICK_BY_THREAD] = block->thread,
                                         [HEAP_TICK_BY_HEAP] = block->heap,
                                         [HEAP_TICK_BY_SIZE] = heap_class_of(block->size)};
    chronicle_move_sums(&adding->sums->tick, &adding->chronicle->effects[effect]);
    if (adding->filter.wants && !adding->filter.wants(adding->filter.context, block->stack))
        return;
    chronicle_add_to_tick(&adding->sums->tick, block, begins);
    for (int i = 0; i < HEAP_TICK_KEYS && adding->status == TTD_OK; i++) {
        struct heap_tick_series *series = &adding->sums->series[i];
        adding->status = begins ? heap_series_add(series, keys[i], block->size)
                                : heap_series_take(series, keys[i], block->size);
    }
}

enum ttd_status chronicle_sum(const struct chronicle *chronicle, struct chronicle_range range,
                              const struct heap_tick *before, struct chronicle_filter filter,
                              struct chronicle_sums *sums)
{
    struct adding adding = {chronicle, sums, filter, TTD_OK};
    *sums = (struct chronicle_sums){.tick = {.position = before->position,
                                             .event = before->event,
                                             .live = before->live,
                                             .peak = before->live.bytes}};
    for (int i = 0; i < HEAP_TICK_KEYS; i++)
        heap_series_init(&sums->series[i]);
    chronicle_each(chronicle, range.from, range.to, chronicle_sum_block, &adding);
    chronicle_settle_sums(&sums->tick);
    sums->tick.position = chronicle_position(chronicle, range.to);
    sums->tick.wall_time = chronicle_wall_time(chronicle, range.to);
    for (int i = 0; i < HEAP_TICK_KEYS && adding.status == TTD_OK; i++)
        adding.status = heap_series_end_tick(&sums->series[i]);
    return adding.status;
}

void chronicle_sums_free(struct chronicle_sums *sums)
{
    for (int i = 0; i < HEAP_TICK_KEYS; i++)
        heap_series_free(&sums->series[i]);
}

static enum heap_quadrant chronicle_quadrant_of(struct chronicle_life life,
                                                struct chronicle_range range)
{
    bool is_freed = life.end < range.to;
    if (life.begin >= range.from)
        return is_freed ? HEAP_AIFI : HEAP_AIFO;
    return is_freed ? HEAP_AOFI : HEAP_AOFO;
}

enum ttd_status chronicle_quadrants_find(const struct chronicle *chronicle,
                                         struct chronicle_range range,
                                         struct chronicle_filter filter,
                                         struct chronicle_quadrants *quadrants)
{
    enum ttd_status status = TTD_OK;
    for (int i = 0; i < HEAP_QUADRANTS; i++)
        heap_series_init(&quadrants->series[i]);
    for (size_t i = 0; i < chronicle->block_count && status == TTD_OK; i++) {
        const struct chronicle_block *block = &chronicle->blocks[i];
        struct chronicle_life life = chronicle->lives[i];
        /* The block was there at the beginning of the range or later, and before its end. */
        if ((life.begin < range.to && (life.begin >= range.from || life.end >= range.from)) &&
            (!filter.wants || filter.wants(filter.context, block->stack)))
            status = heap_series_add(&quadrants->series[chronicle_quadrant_of(life, range)],
                                     block->stack, block->size);
    }
    for (int i = 0; i < HEAP_QUADRANTS && status == TTD_OK; i++)
        status = heap_series_end_tick(&quadrants->series[i]);
    return status;
}

void chronicle_quadrants_free(struct chronicle_quadrants *quadrants)
{
    for (int i = 0; i < HEAP_QUADRANTS; i++)
        heap_series_free(&quadrants->series[i]);
}
