/* SPDX-License-Identifier: MIT */
/** A pass: one replay of a trace for several analyses. */
#ifndef ANALYZER_TRAVEL_PASS_H
#define ANALYZER_TRAVEL_PASS_H

#include "travel/replay_to.h"

/** The largest number of analyses of a pass. */
#define HEAP_PASS_MAX 4

/** An analysis as a pass takes it. At most one of a pass may use `user` of blocks. */
struct heap_watcher {
    /** Told of effects and calls; without `survives`, and with all kinds of effects. */
    struct heap_observer observer;
    /** Called once before the replay begins, whose state may be looked at later; NULL if not
     * wanted.
     */
    void (*begin)(void *context, const struct heap_replay *replay);
    /** Called once with the state in which the pass has arrived, after all effects were told;
     * NULL if not wanted. */
    enum ttd_status (*finish)(void *context, struct heap_replay *replay);
};

struct heap_pass {
    struct heap_watcher watchers[HEAP_PASS_MAX];
    size_t count;
};

/**
 * Replays a trace for all analyses of a pass, each of which is told of everything in order.
 *
 * @param route    without an observer
 * @param outcome  set in any case, that of a failure to what is known
 * @return as heap_replay_to(), and what the watchers return.
 */
enum ttd_status heap_pass_run(struct heap_pass *pass, const struct heap_trace *trace,
                              const struct heap_route *route, struct heap_outcome *outcome,
                              struct ttd_error *error);

#endif
