/* SPDX-License-Identifier: MIT */
#include "heap/replay_parts.h"

static enum ttd_status replay_start(struct heap_replay *replay)
{
    enum ttd_status status = heap_live_init(&replay->live);
    if (status == TTD_OK && heap_is_wanted(replay, HEAP_DISCARDED)) {
        replay->live.discard = heap_discard;
        replay->live.discard_context = replay;
    }
    return status;
}

enum ttd_status heap_replay_init(struct heap_replay *replay, const struct heap_observer *observer)
{
    *replay = (struct heap_replay){0};
    heap_ordinal_map_init(&replay->records);
    if (observer)
        replay->observer = *observer;
    if (replay->observer.effect)
        replay->wanted_effects = ~observer->unwanted;
    if (replay->observer.call)
        replay->wanted_calls = ~observer->unwanted_calls;
    return replay_start(replay);
}

void heap_replay_observe_blocks(struct heap_replay *replay,
                                const struct heap_block_observer *observer)
{
    replay->block_observer = observer ? *observer : (struct heap_block_observer){.context = NULL};
}

void heap_replay_free(struct heap_replay *replay)
{
    heap_live_free(&replay->live);
    heap_queue_free(&replay->queue);
    heap_ordinal_map_free(&replay->records);
    heap_block_copies_free(&replay->ended_since_peak);
}

enum ttd_status heap_replay_reset(struct heap_replay *replay)
{
    struct heap_observer observer = replay->observer;
    struct heap_parents parents = replay->live.parents;
    bool keeps_peak = replay->keeps_peak;
    replay->live.parents = (struct heap_parents){.by_heap = {0}};
    heap_replay_free(replay);
    enum ttd_status status = heap_replay_init(replay, &observer);
    replay->live.parents = parents;
    if (status == TTD_OK && keeps_peak)
        heap_replay_keep_peak(replay);
    return status;
}
