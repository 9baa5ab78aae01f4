/* SPDX-License-Identifier: MIT */
/** A pass: one replay of a trace for several analyses. */
#ifndef ANALYZER_TRAVEL_PASS_H
#define ANALYZER_TRAVEL_PASS_H

#include "travel/notes.h"
#include "travel/replay_to.h"

/** The largest number of watchers of a pass. */
#define HEAP_PASS_MAX 12

/** An analysis as a pass takes it, or a part of one. At most one of a pass may use `user` of
 * blocks. */
struct heap_watcher {
    /** Told of effects and calls up to `to`; without `survives`. Without `effect` or `call` it is
     * not told of these, which is faster. */
    struct heap_observer observer;
    struct ttd_position to;
    /** It is told of notes, when all events of a batch have been applied: so it must not look at
     * the live blocks then, which are ahead. At `finish` it has been told of everything. */
    bool is_deferred;
    /** Called before a deferred watcher is told of notes, to prefetch; NULL if not wanted. */
    void (*prepare)(void *context, const struct heap_notes *notes);
    /** Told of every batch that is read, before its events are applied; NULL if not wanted. */
    enum ttd_status (*batch)(void *context, const struct ttd_batch *batch);
    /** Kinds of chunks that it wants to be told of beside those of the replay. */
    uint32_t kinds;
    /** Called once before the replay begins, whose arrival may be looked at later; NULL if not
     * wanted. */
    void (*begin)(void *context, const struct heap_arrival *arrival);
    /** Called once with the state at `to`, after all effects were told; NULL if not wanted. It may
     * drop the index of live blocks. */
    enum ttd_status (*finish)(void *context, struct heap_arrival *arrival, struct ttd_error *error);
};

/** The watchers that are told of one kind of effect, or of the calls of one action. */
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
    /** While the pass runs: who is told at once, by kind of effect and by action. */
    struct heap_told for_effects[HEAP_EFFECT_KINDS];
    struct heap_told for_calls[TTD_ACTION_DESTROY + 1];
    /** The deferred watchers that still wait; what they are to be told of, which is NULL if there
     * are none; and the effects and calls that any of them wants. */
    const struct heap_watcher *deferred[HEAP_PASS_MAX];
    size_t deferred_count;
    struct heap_notes *notes;
    unsigned noted_effects;
    unsigned noted_calls;
    /** The hook of the trace, which sees each batch first. */
    struct heap_batch_hook hook;
};

/** Adds a watcher. Those of one position finish in the order in which they were added. */
void heap_pass_add(struct heap_pass *pass, const struct heap_watcher *watcher);

/**
 * Replays a trace up to the last position that a watcher wants. Each watcher is told of everything
 * in order. Keyframes are used if no watcher is told of anything.
 *
 * @return as heap_replay_to(), and what the watchers return.
 */
enum ttd_status heap_pass_run(struct heap_pass *pass, const struct heap_trace *trace,
                              struct ttd_error *error);

#endif
