/* SPDX-License-Identifier: MIT */
/** Marking: which nodes the roots lead to, by which kinds of pointers. */
#ifndef ANALYZER_GRAPH_MARK_H
#define ANALYZER_GRAPH_MARK_H

#include "graph/graph.h"

/**
 * Passes of marking. Those by starts use no interior pointers. Each of the three uses a kind of
 * pointer more than the one before: GRAPH_WEAK roots, GRAPH_STALE pointers.
 */
enum mark_pass {
    MARK_BY_STARTS,
    MARK_BY_STARTS_WEAK,
    MARK_BY_STARTS_STALE,
    MARK_BY_ANY,
    MARK_BY_ANY_WEAK,
    MARK_BY_ANY_STALE,
    MARK_PASSES
};

#define MARK_BIT(pass) (1u << (pass))

/** The bits of all passes by starts. */
#define MARKS_BY_STARTS (MARK_BIT(MARK_BY_ANY) - MARK_BIT(MARK_BY_STARTS))

/**
 * Makes all passes.
 *
 * @param marks  by node, all zero: bit 1 << pass is set by the first of the three passes by starts,
 *               and by the first of the three by any pointers, that reaches it. The latter only if
 *               it comes before, so that no pass goes twice through what another has reached.
 *               graph_mark_trusted() leaves more bits set: the lowest of three counts
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY.
 */
enum ttd_status graph_mark(const struct graph *graph, uint8_t *marks);

/**
 * Brings marks up to date after edges lost their flag GRAPH_STALE, and nothing else has changed.
 * Only passes without stale pointers reach more then. A bit that came later than another of the
 * same three may stay set.
 *
 * @param marks  of graph_mark()
 * @return as graph_mark(), whose marks stay as they were without memory.
 */
enum ttd_status graph_mark_trusted(const struct graph *graph, uint8_t *marks);

#endif
