/* SPDX-License-Identifier: MIT */
/** Growth: the pattern in the sizes of a call site's reallocations. */
#ifndef ANALYZER_ANALYSES_ACTIVITY_GROWTH_H
#define ANALYZER_ANALYSES_ACTIVITY_GROWTH_H

#include "analyses/activity/moves.h"

/** Adds a reallocation from `before` to `after` bytes to the group's statistics. */
void heap_growth_add(struct heap_move_group *group, uint64_t before, uint64_t after);

/** Adds the statistics of `group` to those of `sum`. */
void heap_growth_merge(struct heap_move_group *sum, const struct heap_move_group *group);

#endif
