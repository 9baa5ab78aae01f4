/* SPDX-License-Identifier: MIT */
/** A pass: one replay of a trace for several analyses. */
#ifndef ANALYZER_TRAVEL_PASS_H
#define ANALYZER_TRAVEL_PASS_H

#include "travel/replay_to.h"

/** The largest number of analyses of a pass. */
#define HEAP_PASS_MAX 4

/** An analysis that takes part in a pass. Only one analysis of a pass may use `user` of blocks. */
struct heap_watcher {
    /** Is told of effects of the kinds that it wants, and of calls. `survives` must be NULL. */
    struct heap_observer observer;
    /** Called once before the replay begins. The analysis may keep `replay`, and look at its state
     * in later calls. NULL if not needed. */
    void (*begin)(void *context, const struct heap_replay *replay);
    /** Called once after the last effect, with the state at the end of the route. NULL if not
     * needed. */
    enum ttd_status (*finish)(void *context, struct heap_replay *replay);
};

struct heap_pass {
    struct heap_watcher watchers[HEAP_PASS_MAX];
    size_t count;
};

/**
 * Replays a trace once for all analyses of a pass. Each is told of everything, in order.
 *
 * @param route    without an observer
 * @param outcome  set also on failure, as far as the replay got
 * @return as heap_replay_to(), and what the watchers return.
 */
enum ttd_status heap_pass_run(struct heap_pass *pass, const struct heap_trace *trace,
                              const struct heap_route *route, struct heap_outcome *outcome,
                              struct ttd_error *error);

#endif
