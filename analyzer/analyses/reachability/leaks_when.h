/* SPDX-License-Identifier: MIT */
/** The ranges of time in which leaks were lost, as reports show them. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_LEAKS_WHEN_H
#define ANALYZER_ANALYSES_REACHABILITY_LEAKS_WHEN_H

#include "analyses/reachability/leaks.h"

/**
 * Finds when the blocks in `lost`, at least one, were lost, and makes a range of each group of
 * definitely lost ones; or of each block, if `by_block`.
 */
enum ttd_status heap_leaks_date(struct heap_leaks *leaks, const struct heap_trace *trace,
                                const struct heap_snapshots *snapshots, bool by_block,
                                struct ttd_error *error);

#endif
