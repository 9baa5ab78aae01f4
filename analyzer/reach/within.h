/* SPDX-License-Identifier: MIT */
/** Blocks in blocks of other heaps, as edges of the graph. */
#ifndef ANALYZER_REACH_WITHIN_H
#define ANALYZER_REACH_WITHIN_H

#include "reach/builder.h"

/** The offset in its source of an edge that is no word: the source lies in the target. */
#define REACH_LIES_WITHIN UINT64_MAX

/** Adds an edge from each block to the one that it lies in: as long as the inner one is reachable,
 * the memory of the outer one is in use. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
enum ttd_status reach_within_apply(struct reach_builder *builder);

#endif
