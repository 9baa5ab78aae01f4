/* SPDX-License-Identifier: MIT */
/**
 * Words that may be older than the blocks that they point at. Memory from malloc() holds what was
 * there before. So a word of block A that points at block B may be a relic, and A never had a
 * pointer to B, if the block that had this memory before A was released after B was allocated: it
 * may have pointed at B. Otherwise A itself has written the word, or it is older than B.
 *
 * Not so in memory from calloc(), and in what realloc() has copied: of that it is not known what
 * was written when, and it counts as written.
 *
 * Private to reach/.
 */
#ifndef ANALYZER_REACH_STALE_H
#define ANALYZER_REACH_STALE_H

#include "reach/reach.h"

/**
 * Clears the flag GRAPH_STALE, which edges have that may be stale by the times of allocation, where
 * nothing hangs by the edge, since its target is held by others, and where the memory was not
 * released in between. Then classifies the nodes. For that the trace is replayed once more, unless
 * nothing hangs by such edges.
 *
 * With options.omits_verdicts it only drops doubtful roots that something hangs by, and that are
 * relics: see between.h.
 *
 * Memory is bounded by the nodes, a byte for each; by the edges: some 10 bytes for each of those,
 * and 32 for when its word was last released; and by the blocks that are live at once and do not
 * live until the snapshot: those that do are nodes. Time is logarithmic in the number of words for
 * each release.
 *
 * @param reach    has offsets of edges, unless options.omits_verdicts
 * @param options  without keeps_offsets they are freed before the replay
 * @return as heap_replay_to().
 */
enum ttd_status reach_stale_apply(struct heap_reach *reach, const struct heap_trace *trace,
                                  const struct heap_reach_options *options,
                                  struct ttd_error *error);

#endif
