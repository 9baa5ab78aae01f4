/* SPDX-License-Identifier: MIT */
/** The history of an address: every block that ever covered it. */
#ifndef ANALYZER_ANALYSES_STATE_HISTORY_H
#define ANALYZER_ANALYSES_STATE_HISTORY_H

#include "analyses/state/owners.h"
#include "travel/replay_to.h"

struct heap_history_options {
    /** Addresses, both included. */
    uint64_t first;
    uint64_t last;
    /** Number of owners to keep: the last ones. */
    size_t max;
};

struct heap_history {
    struct heap_outcome outcome;
    struct heap_history_options options;
    /** In order of acquisition: the last options.max of `total`. */
    struct heap_owner *owners;
    size_t count;
    uint64_t total;
};

/**
 * Replays the whole trace, or, where there is an index, only what concerns the addresses.
 *
 * @param options  copied
 * @param history  set on TTD_OK; release with heap_history_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_history_find(const struct heap_trace *trace,
                                  const struct heap_history_options *options,
                                  struct heap_history *history, struct ttd_error *error);
void heap_history_free(struct heap_history *history);

#endif
