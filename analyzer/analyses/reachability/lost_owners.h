/* SPDX-License-Identifier: MIT */
/** Dating the owners of an address: when each owner that was never released was lost. */
#ifndef ANALYZER_ANALYSES_REACHABILITY_LOST_OWNERS_H
#define ANALYZER_ANALYSES_REACHABILITY_LOST_OWNERS_H

#include "analyses/reachability/leaks.h"
#include "analyses/state/history.h"

/**
 * Sets heap_owner.lost of the owners that are lost at the end of the trace, by the last snapshot
 * with references and those before it.
 *
 * @param leaks  set on TTD_OK: the ranges that heap_owner.lost points into; all zero if there is no
 *               snapshot or no live owner. Release with heap_leaks_free() after the last use of
 *               `history`
 * @return as heap_leaks_find().
 */
enum ttd_status heap_lost_owners_find(const struct heap_trace *trace, struct heap_history *history,
                                      struct heap_leaks *leaks, struct ttd_error *error);

#endif
