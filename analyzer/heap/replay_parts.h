/* SPDX-License-Identifier: MIT */
/** Internals of the replay: telling the observer, and keeping the records asked for. */
#ifndef ANALYZER_HEAP_REPLAY_PARTS_H
#define ANALYZER_HEAP_REPLAY_PARTS_H

#include "heap/replay.h"

/* ---- Telling ---- */

static inline bool heap_is_wanted(const struct heap_replay *replay, enum heap_effect_kind kind)
{
    return replay->wanted_effects & HEAP_EFFECT_BIT(kind);
}

/* Each returns the first status of the observer that is not TTD_OK; else TTD_OK. */

enum ttd_status heap_tell_call(struct heap_replay *replay, const struct ttd_event *event);

/** Reports an acquired block to the observer; before that, of the one that it replaced, unless
 * `replaced` is NULL. `pending` is the call if it was in flight, else NULL. */
enum ttd_status heap_tell_acquired(struct heap_replay *replay, struct heap_block *block,
                                   struct heap_block *replaced, const struct heap_pending *pending);

/** @param block  NULL if it is not known */
enum ttd_status heap_tell_released(struct heap_replay *replay, const struct ttd_event *event,
                                   struct heap_block *block, bool continues);

enum ttd_status heap_tell_destroyed(struct heap_replay *replay, const struct ttd_event *event,
                                    uint64_t count);

/** A heap_discard_function, for a replay: keeps and passes on the wanted blocks. */
void heap_discard(void *context, const struct heap_block *block, struct ttd_position end);

/* ---- The peak ---- */

/** Whether more is live than at the peak so far. */
static inline bool heap_is_peak(const struct heap_replay *replay)
{
    return heap_sum_is_less(replay->peak.bytes, replay->live.bytes);
}

/** Makes the present state the peak. */
void heap_set_peak(struct heap_replay *replay);

/** Whether a block that ended at `end` was live at the peak, and is to be kept. */
static inline bool heap_was_at_peak(const struct heap_replay *replay,
                                    const struct heap_block *block, struct ttd_position end)
{
    struct ttd_position peak = replay->peak.position;
    return replay->keeps_peak && ttd_position_compare(block->allocated, peak) <= 0 &&
           ttd_position_compare(end, peak) > 0;
}

/* ---- Events ---- */

/** The block that a successful Alloc or ReAlloc acquires. */
static inline struct heap_block heap_block_of_event(const struct ttd_event *event)
{
    return (struct heap_block){.address = event->address,
                               .size = event->size,
                               .event = event->number,
                               .allocated = event->time_end,
                               .thread = event->thread,
                               .stack = event->stack,
                               .heap = event->heap,
                               .action = event->action,
                               .api = event->api};
}

/** Distance of the prefetch, in events. */
#define HEAP_EVENTS_AHEAD 6

/** Prefetches the event HEAP_EVENTS_AHEAD behind this one: it mostly is in another thread's cache.
 * There need not be one. */
static inline __attribute__((always_inline)) void heap_prefetch(const struct ttd_event *event)
{
    uintptr_t address = (uintptr_t)event + HEAP_EVENTS_AHEAD * sizeof *event;
    __builtin_prefetch((const void *)address);
    __builtin_prefetch((const void *)(address + sizeof *event / 2));
}

/**
 * Applies events as long as they take the fast path: calls that succeeded and do what they should,
 * of the parentless heap that was used last. Returns the first that does not, or `end`. The replay
 * must not be watched. An observer may get the releases.
 */
const struct ttd_event *heap_replay_run(struct heap_replay *replay, const struct ttd_event *event,
                                        const struct ttd_event *end);

#endif
