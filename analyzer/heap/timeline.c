/* SPDX-License-Identifier: MIT */
#include "heap/timeline.h"

#include <stdlib.h>
#include <string.h>

typedef struct timeline_finder {
    heap_timeline *timeline;
    heap_axis axis;
    heap_totals totals;
    ttd_position position;
    uint64_t wall_time;
} timeline_finder;

static ttd_status see_call(void *context, const ttd_event *event)
{
    timeline_finder *finder = context;
    if (event->wall_time > finder->wall_time)
        finder->wall_time = event->wall_time;
    return TTD_OK;
}

/* Makes points twice as wide, and so half as many. */
static void merge(heap_timeline *timeline)
{
    size_t count = (timeline->count + 1) / 2;
    for (size_t i = 0; i < count; i++) {
        heap_point *to = &timeline->points[i];
        *to = timeline->points[2 * i];
        if (2 * i + 1 == timeline->count)
            break;
        const heap_point *other = &timeline->points[2 * i + 1];
        if (heap_sum_is_less(to->peak, other->peak))
            to->peak = other->peak;
        to->live = other->live;
        to->allocations += other->allocations;
        to->releases += other->releases;
        heap_sum sum = to->allocated;
        heap_sum_add(&sum, other->allocated.low);
        sum.high += other->allocated.high;
        to->allocated = sum;
    }
    timeline->count = count;
    timeline->width *= 2;
}

/* The state at a position includes all that happens at it: only then does it count. */
static void settle(timeline_finder *finder)
{
    heap_timeline *timeline = finder->timeline;
    if (!timeline->count)
        return;
    heap_point *point = &timeline->points[timeline->count - 1];
    point->live = finder->totals.all;
    if (heap_sum_is_less(point->peak, point->live.bytes))
        point->peak = point->live.bytes;
}

/* The point of a value of the axis, which is not before the last one. */
static heap_point *reach(timeline_finder *finder, uint64_t value)
{
    heap_timeline *timeline = finder->timeline;
    if (!timeline->count)
        timeline->first = value;
    while ((value - timeline->first) / timeline->width >= timeline->max)
        merge(timeline);
    size_t index = (size_t)((value - timeline->first) / timeline->width);
    while (timeline->count <= index) {
        heap_point *point = &timeline->points[timeline->count++];
        *point = (heap_point){.peak = finder->totals.all.bytes,
                              .live = finder->totals.all,
                              .begin = finder->wall_time};
    }
    return &timeline->points[index];
}

static ttd_status see_effect(void *context, const heap_effect *effect)
{
    timeline_finder *finder = context;
    if (effect->kind == HEAP_DISCARDED || effect->kind == HEAP_UNKNOWN_RELEASE)
        return TTD_OK;
    if (ttd_position_compare(effect->position, finder->position) != 0) {
        settle(finder);
        finder->position = effect->position;
    }
    bool is_time = finder->axis == HEAP_AXIS_TIME;
    heap_point *point = reach(finder, is_time ? finder->wall_time : effect->position.sequence);
    if (effect->kind == HEAP_ACQUIRED) {
        point->allocations++;
        heap_sum_add(&point->allocated, effect->block->size);
    } else {
        point->releases += effect->kind == HEAP_DESTROYED ? effect->count : 1;
    }
    return heap_totals_add(&finder->totals, effect);
}

/* Over time points begin where the axis says, whenever the first call was. */
static void finish(timeline_finder *finder)
{
    heap_timeline *timeline = finder->timeline;
    timeline->end = finder->wall_time;
    if (finder->axis != HEAP_AXIS_TIME)
        return;
    for (size_t i = 0; i < timeline->count; i++)
        timeline->points[i].begin = timeline->first + (uint64_t)i * timeline->width;
}

uint64_t heap_timeline_duration(const heap_timeline *timeline, size_t index)
{
    bool is_last = index + 1 == timeline->count;
    uint64_t end = is_last ? timeline->end : timeline->points[index + 1].begin;
    return end - timeline->points[index].begin;
}

ttd_status heap_timeline_find(ttd_reader *reader, heap_axis axis, size_t max,
                              const heap_batch_hook *hook, heap_timeline *timeline,
                              ttd_error *error)
{
    *timeline = (heap_timeline){.width = 1, .max = max};
    timeline->points = calloc(max, sizeof *timeline->points);
    if (!timeline->points)
        return TTD_ERROR_NO_MEMORY;
    timeline_finder finder = {.timeline = timeline, .axis = axis};
    heap_totals_init(&finder.totals);
    heap_observer observer = {.context = &finder, .effect = see_effect, .call = see_call};
    heap_pass pass;
    ttd_status status =
        heap_pass_run(&pass, reader, NULL, ttd_position_max(), &observer, hook, error);
    heap_pass_end(&pass, &timeline->outcome);
    settle(&finder);
    finish(&finder);
    heap_totals_free(&finder.totals);
    if (status != TTD_OK)
        heap_timeline_free(timeline);
    return status;
}

void heap_timeline_free(heap_timeline *timeline)
{
    free(timeline->points);
    timeline->points = NULL;
}
