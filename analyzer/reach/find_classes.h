/* SPDX-License-Identifier: MIT */
/** Finding the classes of blocks: what the first word of each points at. */
#ifndef ANALYZER_REACH_FIND_CLASSES_H
#define ANALYZER_REACH_FIND_CLASSES_H

#include "heap/block_classes.h"
#include "travel/replay_to.h"

/**
 * Finds the classes of the blocks that are live at a snapshot: the newest one with references at a
 * position or before.
 *
 * @param classes  set on TTD_OK, empty if there is no such snapshot; release with
 *                 heap_block_classes_free()
 * @return as heap_replay_to().
 */
enum ttd_status heap_find_classes(const struct heap_trace *trace, struct ttd_position position,
                                  struct heap_block_classes *classes, struct ttd_error *error);

#endif
