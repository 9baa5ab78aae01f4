/* SPDX-License-Identifier: MIT */
/**
 * Words that may be older than the blocks that they point at. Memory from malloc() holds what was
 * there before. So a word of block A that points at block B may be a relic, and A never had a
 * pointer to B, if another block had this memory before A, and was released when B, or an earlier
 * block at the same address, had been allocated: it may have pointed at that. Otherwise A itself
 * has written the word. It does not matter whether A or B was allocated first.
 *
 * Not so in memory from calloc(). What realloc() has copied is as old as it was in the block
 * before: see copied_words.h. What the program itself copies, as by memcpy(), counts as written.
 *
 * Private to reach/.
 */
#ifndef ANALYZER_REACH_STALE_H
#define ANALYZER_REACH_STALE_H

#include "reach/reach.h"

/**
 * Clears the flag GRAPH_STALE, which edges have whose word may be older than its block, where
 * nothing hangs by the edge, since its target is held by others, and where the word cannot be a
 * relic. Then classifies the nodes. For that the trace is replayed once more, unless
 * nothing hangs by such edges; and again if realloc() may have copied relics.
 *
 * With options.omits_verdicts it only drops doubtful roots that something hangs by, and that are
 * relics: see between.h.
 *
 * Memory is bounded by the nodes, a byte for each; by the edges: some 10 bytes for each of those,
 * and 64 for when its word was last released and the address of its target first used; and by the
 * blocks that are live at once and do not live until the snapshot: those that do are nodes. Time is
 * logarithmic in the number of words for each release.
 *
 * @param reach    has offsets of edges, unless options.omits_verdicts
 * @param options  without keeps_offsets they are freed before the replay
 * @return as heap_replay_to().
 */
enum ttd_status reach_stale_apply(struct heap_reach *reach, const struct heap_trace *trace,
                                  const struct heap_reach_options *options,
                                  struct ttd_error *error);

#endif
