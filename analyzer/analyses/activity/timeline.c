/* SPDX-License-Identifier: MIT */
#include "analyses/activity/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "common/search.h"

struct timeline_finder {
    struct heap_timeline *timeline;
    const struct heap_timeline_options *options;
    struct heap_totals totals;
    /* Not all blocks count. */
    bool is_chosen;
    /* The last point, and the value of the axis where it begins; NULL before the first effect. Its
     * `live` is set when it ends. */
    struct heap_point *point;
    uint64_t point_begin;
    /* Runs end where the last point does; and TTD_OK, or why a run could not be counted. */
    struct heap_run_limits limits;
    enum ttd_status run_status;
    /* The live blocks before the effects at the position. */
    struct heap_total settled;
    struct ttd_position position;
    uint64_t wall_time;
    /* The largest number of an event that had an effect before the position or first at it; those
     * of runs are left out, since they lie in the last point. */
    uint64_t event;
};

/* Makes points twice as wide, and so half as many. */
static void timeline_halve(struct heap_timeline *timeline)
{
    size_t count = (timeline->count + 1) / 2;
    for (size_t i = 0; i < count; i++) {
        struct heap_point *point = &timeline->points[i];
        *point = timeline->points[2 * i];
        if (2 * i + 1 == timeline->count)
            break;
        const struct heap_point *next = &timeline->points[2 * i + 1];
        if (heap_sum_is_less(point->peak, next->peak))
            point->peak = next->peak;
        point->live = next->live;
        point->allocations += next->allocations;
        point->releases += next->releases;
        heap_sum_add_sum(&point->allocated, next->allocated);
    }
    timeline->count = count;
    timeline->width *= 2;
}

/* The state at a position includes all that happens at it: only then does it count. */
static inline void timeline_settle(struct timeline_finder *finder)
{
    finder->settled = finder->totals.outer;
    if (finder->point && heap_sum_is_less(finder->point->peak, finder->settled.bytes))
        finder->point->peak = finder->settled.bytes;
}

/* Begins the point of a value of the axis, and those before it. */
static void timeline_reach_point(struct timeline_finder *finder, uint64_t value)
{
    struct heap_timeline *timeline = finder->timeline;
    if (finder->point)
        finder->point->live = finder->settled;
    else
        timeline->first = value - value % timeline->width;
    while ((value - timeline->first) / timeline->width >= timeline->max)
        timeline_halve(timeline);
    size_t index = (size_t)((value - timeline->first) / timeline->width);
    while (timeline->count <= index) {
        struct heap_point *point = &timeline->points[timeline->count++];
        *point = (struct heap_point){.peak = finder->settled.bytes,
                                     .live = finder->settled,
                                     .position = finder->position,
                                     .begin = finder->wall_time};
    }
    finder->point = &timeline->points[index];
    finder->point_begin = timeline->first + (uint64_t)index * timeline->width;
    uint64_t end = heap_add(finder->point_begin, timeline->width);
    bool is_time = finder->options->axis == HEAP_AXIS_TIME;
    finder->limits = (struct heap_run_limits){.event = is_time ? UINT64_MAX : end,
                                              .wall_time = is_time ? end : UINT64_MAX};
}

/* Whether an effect is of blocks that count: of a heap, those were counted that do. */
static enum ttd_status timeline_judge_effect(const struct timeline_finder *finder,
                                             const struct heap_effect *effect, bool *is_wanted)
{
    const struct heap_timeline_options *options = finder->options;
    *is_wanted =
        effect->kind == HEAP_DESTROYED || heap_islands_want_block(options->islands, effect->block);
    if (!options->filter || effect->kind == HEAP_DESTROYED || !*is_wanted)
        return TTD_OK;
    return options->filter(options->filter_context, effect->block->stack, is_wanted);
}

static inline enum ttd_status timeline_count_effect(struct timeline_finder *finder,
                                                    const struct heap_effect *effect)
{
    struct heap_point *point = finder->point;
    uint64_t released = 0;
    enum ttd_status status = heap_totals_add(&finder->totals, effect, &released);
    point->releases += released;
    if (effect->kind == HEAP_ACQUIRED) {
        point->allocations++;
        heap_sum_add(&point->allocated, effect->block->size);
    }
    return status;
}

/* The axis covers all effects, so that timelines of parts of them can be compared. */
static enum ttd_status timeline_see_effect(void *context, const struct heap_effect *effect)
{
    struct timeline_finder *finder = context;
    if (effect->kind == HEAP_DISCARDED || effect->kind == HEAP_UNKNOWN_RELEASE)
        return finder->run_status;
    finder->wall_time = effect->wall_time;
    if (ttd_position_compare(effect->position, finder->position) != 0) {
        timeline_settle(finder);
        finder->position = effect->position;
        /* Points begin between positions. The block of a ReAlloc in flight comes late. */
        if (effect->event > finder->event)
            finder->event = effect->event;
    }
    bool is_time = finder->options->axis == HEAP_AXIS_TIME;
    uint64_t value = is_time ? finder->wall_time : finder->event;
    if (!finder->point || value - finder->point_begin >= finder->timeline->width)
        timeline_reach_point(finder, value);
    bool is_wanted = true;
    enum ttd_status status =
        finder->is_chosen ? timeline_judge_effect(finder, effect, &is_wanted) : TTD_OK;
    if (status == TTD_OK)
        status = finder->run_status;
    return status == TTD_OK && is_wanted ? timeline_count_effect(finder, effect) : status;
}

/* Takes the effects of a run, all in the last point. */
static void timeline_see_run(void *context, const struct heap_run *run)
{
    struct timeline_finder *finder = context;
    struct heap_point *point = finder->point;
    struct heap_totaled *heap;
    if (finder->run_status == TTD_OK)
        finder->run_status = heap_totals_of(&finder->totals, run->heap, &heap);
    if (finder->run_status != TTD_OK)
        return;
    struct heap_total *totals[] = {&heap->total, &finder->totals.outer};
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        totals[i]->blocks += run->acquired - run->released;
        heap_sum_add(&totals[i]->bytes, run->acquired_bytes);
        heap_sum_take(&totals[i]->bytes, run->released_bytes);
    }
    point->allocations += run->acquired;
    point->releases += run->released;
    heap_sum_add(&point->allocated, run->acquired_bytes);
    const struct heap_sum peak = {0, run->peak_bytes};
    if (heap_sum_is_less(point->peak, peak))
        point->peak = peak;
    finder->settled = (struct heap_total){{0, run->settled_bytes}, run->settled_blocks};
    finder->position = run->position;
}

/* Over time points begin where the axis says, whenever the first call was. */
static void timeline_finish(struct timeline_finder *finder)
{
    struct heap_timeline *timeline = finder->timeline;
    timeline->end = finder->wall_time;
    if (finder->point)
        finder->point->live = finder->settled;
    if (finder->options->axis != HEAP_AXIS_TIME)
        return;
    for (size_t i = 0; i < timeline->count; i++)
        timeline->points[i].begin = timeline->first + (uint64_t)i * timeline->width;
}

/* Returns the point in whose stretch a sample was taken; the last one behind them all. Times place
 * samples best: the position of a sample has no steps. */
static struct heap_point *timeline_sampled_point(const struct heap_timeline *timeline,
                                                 const struct heap_memory_sample *sample)
{
    size_t after = 1, high = timeline->count;
    const struct heap_point *points = timeline->points;
    SEARCH_SORTED(after, high, middle,
                  timeline->end
                      ? points[middle].begin <= sample->wall_time
                      : ttd_position_compare(points[middle].position, sample->position) <= 0);
    return &timeline->points[after - 1];
}

static void timeline_place_samples(struct heap_timeline *timeline)
{
    for (size_t i = 0; timeline->count && i < timeline->memory.count; i++) {
        const struct heap_memory_sample *sample = &timeline->memory.items[i];
        struct heap_point *point = timeline_sampled_point(timeline, sample);
        if (sample->resident > point->resident)
            point->resident = sample->resident;
        if (sample->mapped > point->mapped)
            point->mapped = sample->mapped;
    }
}

uint64_t heap_timeline_duration(const struct heap_timeline *timeline, size_t index)
{
    bool is_last = index + 1 == timeline->count;
    uint64_t end = is_last ? timeline->end : timeline->points[index + 1].begin;
    return end - timeline->points[index].begin;
}

/* The smallest of 1, 2, 5, 10, 20, … that covers a length with so many points. */
static uint64_t timeline_round_width(uint64_t length, size_t max)
{
    static const unsigned steps[] = {1, 2, 5};
    uint64_t least = length / max + 1;
    for (uint64_t ten = 1;; ten *= 10) {
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            if (ten > UINT64_MAX / 10)
                return 1;
            if (steps[i] * ten >= least)
                return steps[i] * ten;
        }
    }
}

/* A trace that says how long it is has points of a round width; one that does not, or lies, of one
 * that doubles on the way. */
static uint64_t timeline_first_width(struct ttd_reader *reader,
                                     const struct heap_timeline_options *options)
{
    struct ttd_end end;
    if (ttd_reader_end(reader, &end) != TTD_OK)
        return 1;
    return timeline_round_width(options->axis == HEAP_AXIS_TIME ? end.wall_time : end.events,
                                options->max);
}

enum ttd_status heap_timeline_find(const struct heap_trace *trace,
                                   const struct heap_timeline_options *options,
                                   struct heap_timeline *timeline, struct ttd_error *error)
{
    *timeline = (struct heap_timeline){.width = timeline_first_width(trace->reader, options),
                                       .max = options->max};
    timeline->points = calloc(options->max, sizeof *timeline->points);
    if (!timeline->points)
        return TTD_ERROR_NO_MEMORY;
    enum ttd_status status = heap_memory_samples_read(trace, &timeline->memory, error);
    if (status != TTD_OK) {
        heap_timeline_free(timeline);
        return status;
    }
    struct timeline_finder finder = {
        .timeline = timeline, .options = options, .is_chosen = options->filter || options->islands};
    struct heap_observer observer = {.context = &finder,
                                     .effect = timeline_see_effect,
                                     .run = finder.is_chosen ? NULL : timeline_see_run,
                                     .limits = &finder.limits};
    struct heap_route route = {.to = ttd_position_max(), .observer = &observer};
    struct heap_arrival arrival;
    heap_totals_init(&finder.totals, &arrival.cursor.replay.live.parents);
    status = heap_replay_to(&arrival, trace, &route, error);
    if (status == TTD_OK)
        status = finder.run_status;
    timeline_settle(&finder);
    finder.wall_time = arrival.cursor.replay.wall_time;
    timeline_finish(&finder);
    timeline_place_samples(timeline);
    heap_totals_free(&finder.totals);
    heap_arrival_end(&arrival, &timeline->outcome);
    if (status != TTD_OK)
        heap_timeline_free(timeline);
    return status;
}

void heap_timeline_free(struct heap_timeline *timeline)
{
    free(timeline->points);
    timeline->points = NULL;
    heap_memory_samples_free(&timeline->memory);
}
