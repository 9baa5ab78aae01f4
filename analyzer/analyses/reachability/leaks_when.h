/* SPDX-License-Identifier: MIT */
/** Dating leaks: the range of positions in which each group, or each block, was lost. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_LEAKS_WHEN_H
#define ANALYZER_ANALYSES_REACHABILITY_LEAKS_WHEN_H

#include "analyses/reachability/leaks.h"

/**
 * Sets leaks->lost_ranges. Finds when each block in leaks->lost was lost, and merges the ranges of
 * the blocks of each definitely lost group; or keeps a range of each block.
 *
 * @param leaks  `lost` has at least one block
 * @return as heap_lost_when_find().
 */
enum ttd_status heap_leaks_date(struct heap_leaks *leaks, const struct heap_trace *trace,
                                const struct heap_snapshots *snapshots, bool by_block,
                                struct ttd_error *error);

#endif
