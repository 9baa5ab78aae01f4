/* SPDX-License-Identifier: MIT */
/* The peak, which a replay keeps beside the state. */
#include "heap/replay_parts.h"

static struct heap_peak peak_of(const struct heap_replay *replay)
{
    return (struct heap_peak){replay->position, replay->live.bytes, replay->live.outer_count};
}

void heap_set_peak(struct heap_replay *replay)
{
    replay->peak = peak_of(replay);
    replay->ended_since_peak.count = 0;
}

struct heap_peak heap_replay_peak(const struct heap_replay *replay)
{
    return heap_is_peak(replay) ? peak_of(replay) : replay->peak;
}

void heap_replay_keep_peak(struct heap_replay *replay)
{
    replay->keeps_peak = true;
    replay->live.discard = heap_discard;
    replay->live.discard_context = replay;
}

enum ttd_status heap_replay_end_peak(struct heap_replay *replay)
{
    if (heap_is_peak(replay))
        heap_set_peak(replay);
    heap_live_discard_stale(&replay->live);
    return replay->observer_status;
}
