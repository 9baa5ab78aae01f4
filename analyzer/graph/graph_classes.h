/* SPDX-License-Identifier: MIT */
/** Classes of blocks, as memcheck has them: the held nodes, and the lost ones. */
#ifndef ANALYZER_GRAPH_GRAPH_CLASSES_H
#define ANALYZER_GRAPH_GRAPH_CLASSES_H

#include "graph/graph.h"

/* Marking: the nodes that the roots lead to, and by which kinds of pointers. */

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
 *               it comes before, so no pass visits a node that another has reached.
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

enum graph_class {
    /** A root leads to it by pointers to starts alone. */
    GRAPH_REACHABLE,
    /** Roots lead to it, but on every way there is an interior pointer. */
    GRAPH_POSSIBLY_LOST,
    /** Lost, and held by lost blocks. */
    GRAPH_INDIRECTLY_LOST,
    /** Lost, and held by no block that it does not hold itself. A cycle is represented by its
       lowest node. */
    GRAPH_DEFINITELY_LOST,
};

/** The strongest path from a root to a block: over pointers to starts if the block is reachable,
 * over any pointers if it is possibly lost. */
enum graph_holding {
    /** A path without flags other than GRAPH_INTERIOR. */
    GRAPH_HELD,
    /** A path from a weak root. */
    GRAPH_HELD_WEAKLY,
    /** Every way has a pointer that may be stale. */
    GRAPH_HELD_BY_STALE,
};

struct graph_classes {
    uint32_t node_count;
    /** By node: see graph_mark(); 0 if it is lost. */
    uint8_t *marks;
    /** By node: the definitely lost node that a lost node belongs to, and that node itself; of the
     * others GRAPH_NONE. NULL if nothing is lost. */
    uint32_t *leaders;
};

/**
 * Finds the class of every node. Indirectly lost nodes that several definitely lost ones lead to
 * belong to memcheck's choice, by the order of the nodes: a node gets all nodes that it leads to
 * and no other has, and takes over the nodes of those that it leads to.
 *
 * Memcheck differs where a lost cycle hangs below a lost block that leads to another node of it
 * than the lowest: if that block comes later, memcheck calls both definitely lost.
 *
 * Takes time in proportion to nodes and edges, and 5 bytes a node; 21 if anything is lost.
 *
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY. graph_classes_free() may be called in any case.
 */
enum ttd_status graph_classify(const struct graph *graph, struct graph_classes *classes);

/**
 * The same in two steps; the first one is enough to know the held nodes. After the first all lost
 * nodes count as indirectly lost.
 *
 * @param classes  after graph_classes_mark() in any case: graph_classes_free() may be called
 */
enum ttd_status graph_classes_mark(const struct graph *graph, struct graph_classes *classes);
enum ttd_status graph_classes_lead(const struct graph *graph, struct graph_classes *classes);

/** Brings classes up to date, as graph_mark_trusted() does with the marks. There must be no leaders
 * yet. @return as graph_mark_trusted(). */
enum ttd_status graph_classes_mark_trusted(const struct graph *graph,
                                           struct graph_classes *classes);

void graph_classes_free(struct graph_classes *classes);

static inline enum graph_class graph_class_of(const struct graph_classes *classes, uint32_t node)
{
    unsigned marks = classes->marks[node];
    if (marks)
        return marks & MARKS_BY_STARTS ? GRAPH_REACHABLE : GRAPH_POSSIBLY_LOST;
    return classes->leaders && classes->leaders[node] == node ? GRAPH_DEFINITELY_LOST
                                                              : GRAPH_INDIRECTLY_LOST;
}

/** GRAPH_HELD for a lost node. */
static inline enum graph_holding graph_holding_of(const struct graph_classes *classes,
                                                  uint32_t node)
{
    unsigned marks = classes->marks[node];
    unsigned held = MARK_BIT(MARK_BY_STARTS), weakly = MARK_BIT(MARK_BY_STARTS_WEAK);
    if (!(marks & MARKS_BY_STARTS)) {
        held = MARK_BIT(MARK_BY_ANY);
        weakly = MARK_BIT(MARK_BY_ANY_WEAK);
    }
    if (!marks || marks & held)
        return GRAPH_HELD;
    return marks & weakly ? GRAPH_HELD_WEAKLY : GRAPH_HELD_BY_STALE;
}

/* Strongly connected components: the largest sets of nodes where each leads to all others. */

/**
 * Finds the components of a part of the graph. Takes 12 bytes for each node of the part besides
 * the result.
 *
 * @param outside  by node: not 0 if the node and its edges are no part
 * @param lowest   by node, all zero: is set to the lowest node of its component
 * @return TTD_OK, or TTD_ERROR_NO_MEMORY.
 */
enum ttd_status graph_components(const struct graph *graph, const uint8_t *outside,
                                 uint32_t *lowest);

#endif
