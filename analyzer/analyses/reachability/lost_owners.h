/* SPDX-License-Identifier: MIT */
/** When the owners of an address were lost that nobody has released. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_LOST_OWNERS_H
#define ANALYZER_ANALYSES_REACHABILITY_LOST_OWNERS_H

#include "analyses/reachability/leaks.h"
#include "analyses/state/history.h"

/**
 * Sets heap_owner.lost, as the last snapshot with references and those before it tell.
 *
 * @param leaks  what they tell, all zero if there is none; release with heap_leaks_free() after the
 *               last use of `history`
 * @return as heap_leaks_find().
 */
enum ttd_status heap_lost_owners_find(const struct heap_trace *trace, struct heap_history *history,
                                      struct heap_leaks *leaks, struct ttd_error *error);

#endif
