/* SPDX-License-Identifier: MIT */
#include "analyses/state/history.h"

#include <stdlib.h>

#include "analyses/state/state.h"
#include "base/grow.h"
#include "travel/replay_part.h"
#include "travel/replay_to.h"

/** An owner that may be the answer. */
struct candidate {
    bool is_set;
    /** The block comes from a keyframe, where reallocations and their origins are unknown. */
    bool is_listed;
    struct heap_owner owner;
};

struct owners_finder {
    struct heap_owners_options options;
    /** The replay has passed the position, and `live` is known. */
    bool is_past;
    struct candidate live;
    struct candidate before;
    struct candidate after;
    /** Up to the position: the owners that are live; `user` of a block is the index plus 1. */
    struct candidate *held;
    size_t count;
    size_t capacity;
    /** Elements of `held` that are free. */
    uint32_t *unused;
    size_t unused_count;
    size_t unused_capacity;
};

/* Keeps the owner that was acquired later. */
static void history_keep_later(struct candidate *best, const struct candidate *candidate)
{
    int order = best->is_set ? ttd_position_compare(best->owner.block.allocated,
                                                    candidate->owner.block.allocated)
                             : -1;
    if (candidate->is_set &&
        (order < 0 || (order == 0 && best->owner.block.event < candidate->owner.block.event)))
        *best = *candidate;
}

static void history_set_owner(struct heap_owner *owner, const struct heap_block *block,
                              const struct heap_effect *effect)
{
    *owner = (struct heap_owner){.block = *block, .released = heap_call_none()};
    if (!effect)
        return;
    owner->previous_address = effect->previous_address;
    owner->move = heap_move_of_effect(effect);
}

/* Holds a block that an effect acquired, or one of a keyframe: then the effect is NULL. */
static enum ttd_status history_owners_hold(struct owners_finder *finder, struct heap_block *block,
                                           const struct heap_effect *effect)
{
    size_t index = finder->count;
    if (finder->unused_count) {
        index = finder->unused[--finder->unused_count];
    } else {
        enum ttd_status status = grow_array((void **)&finder->held, &finder->capacity,
                                            finder->count + 1, sizeof *finder->held);
        if (status != TTD_OK)
            return status;
        finder->count++;
    }
    block->user = (uint32_t)index + 1;
    finder->held[index] = (struct candidate){.is_set = true, .is_listed = !effect};
    history_set_owner(&finder->held[index].owner, block, effect);
    return TTD_OK;
}

static enum ttd_status history_owners_acquire(struct owners_finder *finder,
                                              const struct heap_effect *effect)
{
    struct heap_block *block = effect->block;
    uint64_t address = finder->options.address;
    block->user = 0;
    if (!heap_block_covers(block, address, address))
        return TTD_OK;
    if (!finder->is_past)
        return history_owners_hold(finder, block, effect);
    if (!finder->after.is_set) {
        finder->after.is_set = true;
        history_set_owner(&finder->after.owner, block, effect);
    }
    return TTD_OK;
}

static void history_owners_end_candidate(struct candidate *candidate,
                                         const struct heap_effect *effect)
{
    candidate->owner.released = heap_call_of_effect(effect);
    candidate->owner.overlapped = effect->kind == HEAP_OVERLAPPED;
}

static enum ttd_status history_end_held(struct owners_finder *finder, uint32_t index,
                                        const struct heap_effect *effect)
{
    history_owners_end_candidate(&finder->held[index], effect);
    history_keep_later(&finder->before, &finder->held[index]);
    finder->held[index].is_set = false;
    enum ttd_status status = grow_array((void **)&finder->unused, &finder->unused_capacity,
                                        finder->unused_count + 1, sizeof *finder->unused);
    if (status == TTD_OK)
        finder->unused[finder->unused_count++] = index;
    return status;
}

static bool history_owners_is_held(const struct candidate *candidate)
{
    return candidate->is_set && !heap_call_is_known(&candidate->owner.released);
}

static enum ttd_status history_owners_release(struct owners_finder *finder,
                                              const struct heap_effect *effect)
{
    uint64_t event = effect->block->event;
    if (!finder->is_past)
        return effect->block->user ? history_end_held(finder, effect->block->user - 1, effect)
                                   : TTD_OK;
    if (history_owners_is_held(&finder->live) && finder->live.owner.block.event == event)
        history_owners_end_candidate(&finder->live, effect);
    if (history_owners_is_held(&finder->after) && finder->after.owner.block.event == event)
        history_owners_end_candidate(&finder->after, effect);
    return TTD_OK;
}

/* Ends the owners in a destroyed heap. The replay shows their end one by one, but much later and
 * without the call that destroyed the heap. */
static enum ttd_status history_owners_destroy_heap(struct owners_finder *finder,
                                                   const struct heap_effect *effect)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; !finder->is_past && i < finder->count && status == TTD_OK; i++)
        if (finder->held[i].is_set && finder->held[i].owner.block.heap == effect->heap)
            status = history_end_held(finder, (uint32_t)i, effect);
    if (history_owners_is_held(&finder->live) && finder->live.owner.block.heap == effect->heap)
        history_owners_end_candidate(&finder->live, effect);
    if (history_owners_is_held(&finder->after) && finder->after.owner.block.heap == effect->heap)
        history_owners_end_candidate(&finder->after, effect);
    return status;
}

/* Finds the live owner once every effect at the position or before has been seen. */
static void history_pass(struct owners_finder *finder)
{
    for (size_t i = 0; !finder->is_past && i < finder->count; i++)
        history_keep_later(&finder->live, &finder->held[i]);
    finder->is_past = true;
}

/* Nothing later can change the answer. */
static bool history_owners_is_complete(const struct owners_finder *finder)
{
    return finder->is_past && !history_owners_is_held(&finder->live) && finder->after.is_set &&
           !history_owners_is_held(&finder->after);
}

static enum ttd_status history_owners_see_effect(void *context, const struct heap_effect *effect)
{
    struct owners_finder *finder = context;
    enum ttd_status status = TTD_OK;
    if (ttd_position_compare(effect->position, finder->options.at) > 0)
        history_pass(finder);
    switch (effect->kind) {
    case HEAP_ACQUIRED:
        status = history_owners_acquire(finder, effect);
        break;
    case HEAP_RELEASED:
    case HEAP_OVERLAPPED:
        status = history_owners_release(finder, effect);
        break;
    case HEAP_DESTROYED:
        status = history_owners_destroy_heap(finder, effect);
        break;
    case HEAP_DISCARDED:
    case HEAP_UNKNOWN_RELEASE:
        break;
    }
    return status;
}

/* Ends a replay that reads only a part of the trace as soon as the answer is known. */
static enum ttd_status history_see_effect_of_part(void *context, const struct heap_effect *effect)
{
    enum ttd_status status = history_owners_see_effect(context, effect);
    return status == TTD_OK && history_owners_is_complete(context) ? TTD_END : status;
}

static enum ttd_status history_see_listed(void *context, struct heap_block *block)
{
    return history_owners_hold(context, block, NULL);
}

static void history_forget(struct owners_finder *finder)
{
    free(finder->held);
    free(finder->unused);
    *finder = (struct owners_finder){.options = finder->options};
}

static enum ttd_status history_owners_replay(struct owners_finder *finder,
                                             const struct heap_trace *trace,
                                             struct heap_outcome *outcome, struct ttd_error *error)
{
    struct heap_observer observer = {.context = finder,
                                     .effect = history_owners_see_effect,
                                     .unwanted = HEAP_EFFECT_BIT(HEAP_DISCARDED) |
                                                 HEAP_EFFECT_BIT(HEAP_UNKNOWN_RELEASE)};
    struct heap_route route = {.to = ttd_position_max(), .observer = &observer};
    struct heap_arrival arrival;
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    heap_arrival_end(&arrival, outcome);
    history_pass(finder);
    return status;
}

static enum ttd_status history_replay_part(struct owners_finder *finder,
                                           const struct heap_trace *trace,
                                           const struct heap_keyframe *start, uint64_t end,
                                           struct ttd_error *error)
{
    struct heap_observer observer = {.context = finder, .effect = history_see_effect_of_part};
    struct heap_address_range range = {finder->options.address, finder->options.address};
    struct heap_part_route route = {.memory = heap_watch_range(&range),
                                    .start = start,
                                    .end = end,
                                    .to = ttd_position_max(),
                                    .observer = &observer,
                                    .live = history_see_listed};
    enum ttd_status status = heap_replay_part(trace, &route, error);
    history_pass(finder);
    return status;
}

/* Looks for the owner before the position in the part of the trace before a keyframe. */
static enum ttd_status history_owners_find_earlier(struct owners_finder *finder,
                                                   const struct heap_trace *trace,
                                                   const struct heap_keyframe *keyframe,
                                                   struct ttd_error *error)
{
    struct owners_finder earlier = {.options = {finder->options.address, keyframe->position}};
    enum ttd_status status = history_replay_part(&earlier, trace, NULL, keyframe->next, error);
    history_keep_later(&finder->before, &earlier.before);
    history_forget(&earlier);
    return status;
}

/* Completes an owner that a keyframe has listed, by the event that acquired it. */
static enum ttd_status history_owners_complete_candidate(struct candidate *candidate,
                                                         const struct heap_trace *trace,
                                                         struct ttd_error *error)
{
    struct heap_owner *owner = &candidate->owner;
    if (!candidate->is_set || !candidate->is_listed)
        return TTD_OK;
    return heap_confirm_and_complete(trace->reader, &owner->block, &owner->previous_address,
                                     &owner->move, error);
}

/* Starts at the keyframe before the position. The outcome comes from a jump to the end, since the
 * replay of an address has no counts. */
static enum ttd_status history_owners_look_up(struct owners_finder *finder,
                                              const struct heap_trace *trace,
                                              struct heap_outcome *outcome, struct ttd_error *error)
{
    const struct heap_keyframe *keyframe =
        heap_keyframes_before(trace->keyframes, finder->options.at, false);
    struct heap_route route = {.to = ttd_position_max()};
    struct heap_arrival arrival;
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    heap_arrival_end(&arrival, outcome);
    if (status == TTD_OK)
        status = history_replay_part(finder, trace, keyframe, UINT64_MAX, error);
    const struct candidate *before = &finder->before;
    bool is_since_keyframe =
        before->is_set && keyframe &&
        ttd_position_compare(before->owner.block.allocated, keyframe->position) > 0;
    if (status == TTD_OK && keyframe && !finder->live.is_set && !is_since_keyframe)
        status = history_owners_find_earlier(finder, trace, keyframe, error);
    if (status == TTD_OK)
        status = history_owners_complete_candidate(&finder->live, trace, error);
    return status == TTD_OK && !finder->live.is_set
               ? history_owners_complete_candidate(&finder->before, trace, error)
               : status;
}

enum ttd_status heap_owners_find(const struct heap_trace *trace,
                                 const struct heap_owners_options *options,
                                 struct heap_owners *owners, struct ttd_error *error)
{
    struct owners_finder finder = {.options = *options};
    struct heap_outcome outcome = {.truncated = false};
    enum ttd_status status = TTD_ERROR_CORRUPT;
    if (trace->keyframes)
        status = history_owners_look_up(&finder, trace, &outcome, error);
    if (status == TTD_ERROR_CORRUPT) {
        history_forget(&finder);
        status = history_owners_replay(&finder, trace, &outcome, error);
    }
    if (status == TTD_OK)
        *owners = (struct heap_owners){.outcome = outcome,
                                       .options = *options,
                                       .has_live = finder.live.is_set,
                                       .live = finder.live.owner,
                                       .has_before = finder.before.is_set && !finder.live.is_set,
                                       .before = finder.before.owner,
                                       .has_after = finder.after.is_set,
                                       .after = finder.after.owner};
    history_forget(&finder);
    return status;
}

static enum ttd_status history_acquire(struct heap_history *history,
                                       const struct heap_effect *effect)
{
    struct heap_block *block = effect->block;
    block->user = 0;
    if (!heap_block_covers(block, history->options.first, history->options.last))
        return TTD_OK;
    uint64_t ordinal = ++history->total;
    if (!history->options.max)
        return TTD_OK;
    size_t slot = (size_t)((ordinal - 1) % history->options.max);
    enum ttd_status status = grow_array((void **)&history->owners, &history->capacity, slot + 1,
                                        sizeof *history->owners);
    if (status != TTD_OK)
        return status;
    block->user = (uint32_t)ordinal;
    history->owners[slot] = (struct heap_owner){.block = *block,
                                                .released = heap_call_none(),
                                                .previous_address = effect->previous_address,
                                                .move = heap_move_of_effect(effect),
                                                .ordinal = ordinal};
    return TTD_OK;
}

static void history_release(struct heap_history *history, const struct heap_effect *effect)
{
    uint32_t ordinal = effect->block->user;
    if (!ordinal)
        return;
    struct heap_owner *owner = &history->owners[(ordinal - 1) % history->options.max];
    if (owner->ordinal != ordinal)
        return;
    owner->released = heap_call_of_effect(effect);
    owner->overlapped = effect->kind == HEAP_OVERLAPPED;
}

/* Ends the owners in a destroyed heap. The replay shows their end one by one, but much later and
 * without the call that destroyed the heap. */
static void history_destroy_heap(struct heap_history *history, const struct heap_effect *effect)
{
    size_t count =
        history->total < history->options.max ? (size_t)history->total : history->options.max;
    for (size_t i = 0; i < count; i++) {
        struct heap_owner *owner = &history->owners[i];
        if (owner->block.heap == effect->heap && !heap_call_is_known(&owner->released))
            owner->released = heap_call_of_effect(effect);
    }
}

static enum ttd_status history_see_effect(void *context, const struct heap_effect *effect)
{
    struct heap_history *history = context;
    switch (effect->kind) {
    case HEAP_ACQUIRED:
        return history_acquire(history, effect);
    case HEAP_RELEASED:
    case HEAP_OVERLAPPED:
        history_release(history, effect);
        return TTD_OK;
    case HEAP_DESTROYED:
        history_destroy_heap(history, effect);
        return TTD_OK;
    case HEAP_DISCARDED:
    case HEAP_UNKNOWN_RELEASE:
        break;
    }
    return TTD_OK;
}

/* While owners are collected they are a ring; sorting by ordinal straightens it. */
static int history_compare_owners(const void *a, const void *b)
{
    const struct heap_owner *x = a;
    const struct heap_owner *y = b;
    return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

static enum ttd_status history_replay(struct heap_history *history, const struct heap_trace *trace,
                                      const struct heap_observer *observer, struct ttd_error *error)
{
    struct heap_route route = {.to = ttd_position_max(), .observer = observer};
    struct heap_arrival arrival;
    history->total = 0;
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    heap_arrival_end(&arrival, &history->outcome);
    return status;
}

/*
 * Replays only events of the range, where there is an index. Such a replay has no counts, so the
 * outcome comes from a jump to the end. All events must still be read: a keyframe does not list the
 * blocks that were released before it, and these are part of the history.
 */
static enum ttd_status history_replay_range(struct heap_history *history,
                                            const struct heap_trace *trace,
                                            const struct heap_observer *observer,
                                            struct ttd_error *error)
{
    struct heap_address_range range = {history->options.first, history->options.last};
    struct heap_part_route route = {.memory = heap_watch_range(&range),
                                    .end = UINT64_MAX,
                                    .to = ttd_position_max(),
                                    .observer = observer};
    struct heap_route end = {.to = ttd_position_max()};
    struct heap_arrival arrival;
    enum ttd_status status = heap_replay_to(&arrival, trace, &end, error);
    heap_arrival_end(&arrival, &history->outcome);
    return status == TTD_OK ? heap_replay_part(trace, &route, error) : status;
}

enum ttd_status heap_history_find(const struct heap_trace *trace,
                                  const struct heap_history_options *options,
                                  struct heap_history *history, struct ttd_error *error)
{
    *history = (struct heap_history){.options = *options};
    struct heap_observer observer = {.context = history, .effect = history_see_effect};
    enum ttd_status status = TTD_ERROR_CORRUPT;
    if (trace->keyframes)
        status = history_replay_range(history, trace, &observer, error);
    if (status == TTD_ERROR_CORRUPT)
        status = history_replay(history, trace, &observer, error);
    history->count = history->total < options->max ? (size_t)history->total : options->max;
    if (history->count)
        qsort(history->owners, history->count, sizeof *history->owners, history_compare_owners);
    if (status != TTD_OK)
        heap_history_free(history);
    return status;
}

void heap_history_free(struct heap_history *history)
{
    free(history->owners);
    history->owners = NULL;
}
