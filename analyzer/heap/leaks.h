/* SPDX-License-Identifier: MIT */
/** Blocks that were not released, apart from those that the language runtimes keep. */
#ifndef ANALYZER_HEAP_LEAKS_H
#define ANALYZER_HEAP_LEAKS_H

#include "heap/kept.h"
#include "heap/pass.h"

typedef struct heap_leaks {
    heap_groups groups;
    heap_runtime runtime;
    heap_outcome outcome;
} heap_leaks;

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
ttd_status heap_leaks_find(ttd_reader *reader, const heap_keyframes *keyframes, ttd_position at,
                           heap_split split, const heap_batch_hook *hook, heap_leaks *leaks,
                           ttd_error *error);
void heap_leaks_free(heap_leaks *leaks);

#endif
