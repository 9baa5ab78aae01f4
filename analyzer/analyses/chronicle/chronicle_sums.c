/* SPDX-License-Identifier: MIT */

#include "analyses/chronicle/chronicle_sums.h"

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

static void add_to_tick(struct heap_tick *tick, const struct chronicle_block *block, bool begins)
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
    add_to_tick(&adding->sums->tick, block, begins);
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

/* Whether a block was there at the beginning of a range or later, and before its end. */
static bool quadrants_is_there(struct chronicle_life life, struct chronicle_range range)
{
    return life.begin < range.to && (life.begin >= range.from || life.end >= range.from);
}

static enum heap_quadrant quadrant_of(struct chronicle_life life, struct chronicle_range range)
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
        if (quadrants_is_there(life, range) &&
            (!filter.wants || filter.wants(filter.context, block->stack)))
            status = heap_series_add(&quadrants->series[quadrant_of(life, range)], block->stack,
                                     block->size);
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
