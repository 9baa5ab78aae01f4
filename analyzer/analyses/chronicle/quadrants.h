/* SPDX-License-Identifier: MIT */
/** The blocks between two moments in four quadrants, as analyses/state/diff.h has them. */
#ifndef ANALYZER_ANALYSES_CHRONICLE_QUADRANTS_H
#define ANALYZER_ANALYSES_CHRONICLE_QUADRANTS_H

#include "analyses/chronicle/sums.h"
#include "analyses/state/diff.h"

/** By quadrant the sums of its blocks by stack, as the changes of one tick. */
struct chronicle_quadrants {
    struct heap_tick_series series[HEAP_QUADRANTS];
};

/**
 * Finds what was live at the first moment or acquired since, and whether it had ended by the second
 * one. Blocks that the runtimes keep are not told apart.
 *
 * @param quadrants  release with chronicle_quadrants_free(), also on failure
 * @return TTD_OK, TTD_ERROR_NO_MEMORY.
 */
enum ttd_status chronicle_quadrants_find(const struct chronicle *chronicle,
                                         struct chronicle_range range,
                                         struct chronicle_filter filter,
                                         struct chronicle_quadrants *quadrants);
void chronicle_quadrants_free(struct chronicle_quadrants *quadrants);

#endif
