/* SPDX-License-Identifier: MIT */
/** A pass: one replay of a trace for several analyses. */
#ifndef ANALYZER_TRAVEL_PASS_H
#define ANALYZER_TRAVEL_PASS_H

#include "heap/replay.h"
#include "travel/forward.h"
#include "travel/replay_to.h"

/*
 * Notes: effects and calls of a replay, kept for observers that get them later,
 * one observer after the other. What an observer reads then stays in the cache, and it can prefetch
 * what it will need, since it knows what comes next.
 */

/** Effects in a set of notes: more than a batch of events mostly has. */
#define HEAP_NOTES_MAX 256

struct heap_note {
    /** Its pointers lead to the copies in the notes. */
    struct heap_effect effect;
    struct heap_block block;
    /** Number of the calls in heap_notes.calls that came before the effect. */
    size_t call_count;
};

/** See heap_notes_clear(); must not be moved. */
struct heap_notes {
    struct heap_note notes[HEAP_NOTES_MAX];
    size_t count;
    /** Where the effect is to be built that is added next: see heap_observer.place. */
    struct heap_effect *place;
    struct heap_block previous[HEAP_NOTES_MAX];
    size_t previous_count;
    /** The calls, in their batch, and valid as long. Calls that the replay kept to itself are among
     * them. */
    const struct ttd_event *calls;
    size_t call_count;
};

/** Forgets all notes; also prepares for the first ones. */
static inline void heap_notes_clear(struct heap_notes *notes)
{
    notes->count = notes->previous_count = notes->call_count = 0;
    notes->place = &notes->notes[0].effect;
}

/** Adds a call of the same batch as those before. */
static inline void heap_notes_add_call(struct heap_notes *notes, const struct ttd_event *event)
{
    if (!notes->call_count)
        notes->calls = event;
    notes->call_count = (size_t)(event - notes->calls) + 1;
}

/** Adds the effect that was built at notes->place. Returns whether the notes are full: then they
 * are to be delivered and cleared before the next effect is built. */
static inline bool heap_notes_add(struct heap_notes *notes)
{
    struct heap_note *note = &notes->notes[notes->count++];
    struct heap_effect *effect = &note->effect;
    note->call_count = notes->call_count;
    if (effect->block) {
        note->block = *effect->block;
        effect->block = &note->block;
    }
    if (effect->previous) {
        struct heap_block *previous = &notes->previous[notes->previous_count++];
        *previous = *effect->previous;
        effect->previous = previous;
    }
    notes->place = &note[1].effect;
    return notes->count == HEAP_NOTES_MAX;
}

/** Tells an observer of all notes, in order. Returns its first status that is not TTD_OK; else
 * TTD_OK. */
enum ttd_status heap_notes_tell(const struct heap_notes *notes,
                                const struct heap_observer *observer);

/** The largest number of watchers of a pass. */
#define HEAP_PASS_MAX 12

/** An analysis as a pass takes it, or a part of one. At most one of a pass may use `user` of
 * blocks. */
struct heap_watcher {
    /** Gets effects and calls up to `to`; has no `survives`. Without `effect` or `call` it gets
     * none of these, which is faster. */
    struct heap_observer observer;
    struct ttd_position to;
    /** It gets effects as notes, after all events of a batch were applied, and must not read the
     * live blocks then: they are ahead. Before `finish` it has got all of them. */
    bool is_deferred;
    /** Called before a deferred watcher gets notes, to prefetch; NULL if not wanted. */
    void (*prepare)(void *context, const struct heap_notes *notes);
    /** Told of every batch that is read, before its events are applied; NULL if not wanted. */
    enum ttd_status (*batch)(void *context, const struct ttd_batch *batch);
    /** Kinds of chunks that it wants to see beside the replay's. */
    uint32_t kinds;
    /** See heap_route.wants_blocks_only. */
    bool wants_blocks_only;
    /** Gets sums of chunks instead of effects and calls if it is the only watcher, and what these
     * sums have; NULL if it needs each call. */
    const struct heap_net_observer *nets;
    struct ttd_net_sum_options sums;
    /** Called once before the replay begins, whose arrival may be looked at later; NULL if not
     * wanted. */
    void (*begin)(void *context, const struct heap_arrival *arrival);
    /** Called once with the state at `to`, after all effects; NULL if not wanted. It may
     * drop the index of live blocks. */
    enum ttd_status (*finish)(void *context, struct heap_arrival *arrival, struct ttd_error *error);
};

/** The watchers of one kind of effect, or of the calls of one action. */
struct heap_told {
    const struct heap_observer *observers[HEAP_PASS_MAX];
    size_t count;
};

/** All zero when empty. */
struct heap_pass {
    struct heap_watcher watchers[HEAP_PASS_MAX];
    size_t count;
    /** The replay keeps the peak: see heap_replay_keep_peak(). */
    bool keeps_peak;
    /** While the pass runs: the watchers that get effects at once, by kind of effect and by action.
     */
    struct heap_told for_effects[HEAP_EFFECT_KINDS];
    struct heap_told for_calls[TTD_ACTION_DESTROY + 1];
    /** The deferred watchers that still wait; and their notes, NULL if there
     * are none; and the effects and calls that any of them wants. */
    const struct heap_watcher *deferred[HEAP_PASS_MAX];
    size_t deferred_count;
    struct heap_notes *notes;
    unsigned noted_effects;
    unsigned noted_calls;
    /** The hook of the trace; it sees each batch first. */
    struct heap_batch_hook hook;
};

/** Adds a watcher. Those of one position finish in order of their addition. */
void heap_pass_add(struct heap_pass *pass, const struct heap_watcher *watcher);

/**
 * Replays a trace up to the last position that a watcher wants. Each watcher gets everything
 * in order. Keyframes are used if no watcher wants anything.
 *
 * @return as heap_replay_to(), and what the watchers return.
 */
enum ttd_status heap_pass_run(struct heap_pass *pass, const struct heap_trace *trace,
                              struct ttd_error *error);

#endif
