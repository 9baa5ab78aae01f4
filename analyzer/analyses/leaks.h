/* SPDX-License-Identifier: MIT */
/** Blocks that were not released, apart from those that the language runtimes keep. */
#ifndef ANALYZER_ANALYSES_LEAKS_H
#define ANALYZER_ANALYSES_LEAKS_H

#include "analyses/kept.h"
#include "travel/replay_to.h"

struct heap_leaks_options {
    struct ttd_position at;
    /** Splits the groups, beside the stack. */
    enum heap_split split;
};

struct heap_leaks {
    struct heap_outcome outcome;
    struct heap_groups groups;
    struct heap_runtime runtime;
};

/**
 * Finds the blocks that are live at a position and that no runtime keeps.
 *
 * @param leaks  set on TTD_OK; release with heap_leaks_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_leaks_find(const struct heap_trace *trace,
                                const struct heap_leaks_options *options, struct heap_leaks *leaks,
                                struct ttd_error *error);
void heap_leaks_free(struct heap_leaks *leaks);

#endif
