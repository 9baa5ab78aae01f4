/* SPDX-License-Identifier: MIT */
#include "analyses/state/history.h"

#include <stdlib.h>

#include "travel/replay_range.h"

static void history_acquire(struct heap_history *history, const struct heap_effect *effect)
{
    struct heap_block *block = effect->block;
    block->user = 0;
    if (!heap_block_covers(block, history->options.first, history->options.last))
        return;
    uint64_t ordinal = ++history->total;
    block->user = (uint32_t)ordinal;
    history->owners[(ordinal - 1) % history->options.max] =
        (struct heap_owner){.block = *block,
                            .released = heap_call_none(),
                            .previous_address = effect->previous_address,
                            .move = heap_move_of_effect(effect),
                            .ordinal = ordinal};
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
        history_acquire(history, effect);
        return TTD_OK;
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
static enum ttd_status replay_range(struct heap_history *history, const struct heap_trace *trace,
                                    const struct heap_observer *observer, struct ttd_error *error)
{
    struct heap_range_route route = {.range = {history->options.first, history->options.last},
                                     .end = UINT64_MAX,
                                     .observer = observer};
    struct heap_route end = {.to = ttd_position_max()};
    struct heap_arrival arrival;
    enum ttd_status status = heap_replay_to(&arrival, trace, &end, error);
    heap_arrival_end(&arrival, &history->outcome);
    return status == TTD_OK ? heap_replay_range(trace, &route, error) : status;
}

enum ttd_status heap_history_find(const struct heap_trace *trace,
                                  const struct heap_history_options *options,
                                  struct heap_history *history, struct ttd_error *error)
{
    *history = (struct heap_history){.options = *options};
    history->owners = calloc(options->max, sizeof *history->owners);
    if (!history->owners)
        return TTD_ERROR_NO_MEMORY;
    struct heap_observer observer = {.context = history, .effect = history_see_effect};
    enum ttd_status status = TTD_ERROR_CORRUPT;
    if (trace->keyframes)
        status = replay_range(history, trace, &observer, error);
    if (status == TTD_ERROR_CORRUPT)
        status = history_replay(history, trace, &observer, error);
    history->count = history->total < options->max ? (size_t)history->total : options->max;
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
