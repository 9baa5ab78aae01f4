/* SPDX-License-Identifier: MIT */
/** Blocks that were not released, apart from those that the language runtimes keep. */
#ifndef ANALYZER_ANALYSES_LEAKS_H
#define ANALYZER_ANALYSES_LEAKS_H

#include "analyses/kept.h"
#include "travel/pass.h"

struct heap_leaks {
    struct heap_groups groups;
    struct heap_runtime runtime;
    struct heap_outcome outcome;
};

/**
 * Finds what is live at `at` and not kept by a runtime.
 *
 * @param reader    tolerant; used, but not owned
 * @param keyframes as for heap_cursor_init()
 * @param split     of the groups
 * @param hook      sees every batch read; NULL for none
 * @param leaks     set on TTD_OK; release with heap_leaks_free()
 * @param error     detail on failure
 * @return as heap_cursor_seek().
 */
enum ttd_status heap_leaks_find(struct ttd_reader *reader, const struct heap_keyframes *keyframes,
                                struct ttd_position at, enum heap_split split,
                                const struct heap_batch_hook *hook, struct heap_leaks *leaks,
                                struct ttd_error *error);
void heap_leaks_free(struct heap_leaks *leaks);

#endif
