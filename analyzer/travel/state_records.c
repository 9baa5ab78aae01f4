/* SPDX-License-Identifier: MIT */
#include "travel/state_records.h"

#include <string.h>

_Static_assert(TTD_STATE_ACTIONS == TTD_ACTION_DESTROY + 1, "counts by action");

/* A group's table is the record's. */
_Static_assert((int)HEAP_BY_STACK == (int)TTD_SUMS_BY_STACK &&
                   (int)HEAP_BY_HEAP == (int)TTD_SUMS_BY_HEAP &&
                   (int)HEAP_BY_THREAD == (int)TTD_SUMS_BY_THREAD &&
                   (int)HEAP_BY_SIZE == (int)TTD_SUMS_BY_SIZE,
               "tables");

/* ---- States ---- */

struct ttd_state heap_state_of_keyframe(const struct heap_keyframe *keyframe)
{
    const struct heap_counts *counts = &keyframe->counts;
    struct ttd_state state = {.form = keyframe->is_summary ? TTD_STATE_SUMMARY : TTD_STATE_KEYFRAME,
                              .position = keyframe->position,
                              .blocks = keyframe->blocks,
                              .next_event = keyframe->next,
                              .events = counts->events,
                              .failed = counts->failed,
                              .unfinished = counts->unfinished,
                              .unknown_releases = counts->unknown_releases,
                              .overlaps = counts->overlaps,
                              .sums = keyframe->sums,
                              .end = keyframe->end};
    memcpy(state.actions, counts->actions, sizeof state.actions);
    return state;
}

struct heap_keyframe heap_keyframe_of_state(const struct ttd_state *state)
{
    struct heap_keyframe keyframe = {.position = state->position,
                                     .counts = {.events = state->events,
                                                .failed = state->failed,
                                                .unfinished = state->unfinished,
                                                .unknown_releases = state->unknown_releases,
                                                .overlaps = state->overlaps},
                                     .next = state->next_event,
                                     .blocks = state->blocks,
                                     .is_summary = state->form == TTD_STATE_SUMMARY,
                                     .sums = state->sums,
                                     .end = state->end};
    memcpy(keyframe.counts.actions, state->actions, sizeof state->actions);
    return keyframe;
}

struct ttd_state heap_state_of_peak(const struct heap_peak *peak)
{
    return (struct ttd_state){.form = TTD_STATE_PEAK,
                              .position = peak->position,
                              .blocks = peak->blocks,
                              .bytes = peak->bytes.low,
                              .bytes_high = peak->bytes.high};
}

struct heap_peak heap_peak_of_state(const struct ttd_state *state)
{
    return (struct heap_peak){state->position, {state->bytes_high, state->bytes}, state->blocks};
}

/* ---- Sums ---- */

struct ttd_sum heap_sum_of_group(size_t table, const struct heap_group *group)
{
    return (struct ttd_sum){.table = (enum ttd_sum_table)table,
                            .key = table == HEAP_BY_STACK ? group->key.stack : group->key.property,
                            .api = group->api,
                            .blocks = group->blocks,
                            .bytes = group->bytes,
                            .first = group->first,
                            .last = group->last};
}

/* Whether blocks of a class of sizes can have so many bytes. */
static bool fits_class(const struct heap_group *group)
{
    uint64_t first, last, lowest, highest;
    heap_class_range(group->key.property, &first, &last);
    if (__builtin_mul_overflow(first, group->blocks, &lowest))
        lowest = UINT64_MAX;
    if (__builtin_mul_overflow(last, group->blocks, &highest))
        highest = UINT64_MAX;
    return group->bytes >= lowest && group->bytes <= highest;
}

bool heap_group_of_sum(const struct ttd_sum *sum, struct heap_group *group)
{
    *group = (struct heap_group){.api = sum->api,
                                 .blocks = sum->blocks,
                                 .bytes = sum->bytes,
                                 .first = sum->first,
                                 .last = sum->last};
    if (sum->table == TTD_SUMS_BY_STACK)
        group->key.stack = sum->key;
    else
        group->key.property = sum->key;
    return !heap_group_is_unknown(group) && (sum->table != TTD_SUMS_BY_SIZE || fits_class(group));
}
