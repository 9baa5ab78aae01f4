/* SPDX-License-Identifier: MIT */
/* The stretches of events that ticks end: they begin and end, and become longer. */
#include <stdlib.h>

#include "analyses/activity/ticks_parts.h"

/* The state at a position includes all that happens at it: only then does it count. */
static void ticks_settle(struct ticks_finder *finder)
{
    finder->open.live = finder->totals.outer;
    if (heap_sum_is_less(finder->open.peak, finder->open.live.bytes))
        finder->open.peak = finder->open.live.bytes;
}

enum ttd_status ticks_settle_series(struct heap_ticks *ticks, const uint32_t *new_ticks)
{
    enum ttd_status status = TTD_OK;
    for (int key = 0; key < HEAP_TICK_KEYS && status == TTD_OK; key++)
        status = heap_series_settle(&ticks->series[key], new_ticks);
    return status;
}

/* Adds what happened in a tick to the one that follows it and takes its place. */
static void ticks_join(struct heap_tick *tick, const struct heap_tick *before)
{
    if (heap_sum_is_less(tick->peak, before->peak))
        tick->peak = before->peak;
    tick->allocations += before->allocations;
    heap_sum_add(&tick->allocated, before->allocated.low);
    tick->allocated.high += before->allocated.high;
    tick->releases += before->releases;
}

/* Makes stretches twice as long, and so about half as many. */
static enum ttd_status widen(struct ticks_finder *finder)
{
    struct heap_ticks *ticks = finder->ticks;
    uint32_t *new_ticks = malloc(ticks->count * sizeof *new_ticks);
    size_t count = 0;
    if (!new_ticks)
        return TTD_ERROR_NO_MEMORY;
    ticks->width *= 2;
    finder->open.stretch /= 2;
    for (size_t i = 0; i < ticks->count; i++) {
        struct heap_tick tick = ticks->ticks[i];
        tick.stretch /= 2;
        /* The first one is before all stretches. */
        bool joins = count > 1 && ticks->ticks[count - 1].stretch == tick.stretch;
        if (joins)
            ticks_join(&tick, &ticks->ticks[--count]);
        new_ticks[i] = (uint32_t)count;
        ticks->ticks[count++] = tick;
    }
    heap_spans_merge(&ticks->spans, new_ticks, ticks->count);
    ticks->count = count;
    enum ttd_status status = ticks_settle_series(ticks, new_ticks);
    free(new_ticks);
    return status;
}

enum ttd_status ticks_end_tick(struct ticks_finder *finder)
{
    struct heap_ticks *ticks = finder->ticks;
    ticks_settle(finder);
    ticks->ticks[ticks->count++] = finder->open;
    enum ttd_status status = TTD_OK;
    for (int key = 0; key < HEAP_TICK_KEYS && status == TTD_OK; key++)
        status = heap_series_end_tick(&ticks->series[key]);
    finder->open = (struct heap_tick){.position = finder->open.position,
                                      .event = finder->open.event,
                                      .wall_time = finder->open.wall_time,
                                      .live = finder->open.live,
                                      .peak = finder->open.live.bytes,
                                      .stretch = finder->open.stretch};
    const struct heap_tick_series *by_stack = &ticks->series[HEAP_TICK_BY_STACK];
    while (status == TTD_OK && ticks->count > 3 &&
           (ticks->count >= finder->options.max ||
            by_stack->change_count > finder->options.changes_max + 4 * by_stack->count))
        status = widen(finder);
    return status;
}

/* Begins the stretch of the event that comes so many behind first_event. */
static void begin_stretch(struct ticks_finder *finder, uint64_t distance)
{
    uint64_t width = finder->ticks->width;
    finder->open.stretch = distance / width;
    finder->stretch_last = heap_add(finder->open.stretch * width, width - 1);
}

enum ttd_status ticks_move_on(struct ticks_finder *finder, const struct heap_effect *effect)
{
    struct ttd_position position = effect->position;
    uint64_t event = effect->event;
    ticks_settle(finder);
    enum ttd_status status = TTD_OK;
    uint64_t largest = event > finder->open.event ? event : finder->open.event;
    if (!finder->is_in_range && ttd_position_compare(position, finder->options.from) >= 0) {
        status = ticks_end_tick(finder);
        finder->is_in_range = true;
        finder->first_event = largest;
        begin_stretch(finder, 0);
    }
    if (status == TTD_OK && finder->is_in_range &&
        largest - finder->first_event > finder->stretch_last) {
        status = ticks_end_tick(finder);
        begin_stretch(finder, largest - finder->first_event);
    }
    finder->open.position = position;
    finder->open.event = largest;
    finder->open.wall_time = effect->wall_time;
    return status;
}
