/* SPDX-License-Identifier: MIT */
/**
 * Memory of a heap that the process began with. The child of a fork has its parent's blocks, and an
 * attached process those from before; its trace does not list them. What they point at is held. So
 * a word of a heap in which no block of the trace was ever counts as a root. Some of these words
 * are relics in free memory, which may hide that a block is lost.
 *
 * Private to reach/.
 */
#ifndef ANALYZER_REACH_INHERITED_H
#define ANALYZER_REACH_INHERITED_H

#include "reach/builder.h"

/** Whether the process of a trace began with blocks that the trace does not list. */
bool reach_is_inheriting(const struct ttd_reader *reader);

/**
 * Adds the roots among the builder's words between blocks. For that the trace is replayed once
 * more, unless there are none.
 *
 * @return as heap_replay_to().
 */
enum ttd_status reach_inherited_apply(struct reach_builder *builder, const struct heap_trace *trace,
                                      struct ttd_error *error);

#endif
