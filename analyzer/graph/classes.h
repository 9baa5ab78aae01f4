/* SPDX-License-Identifier: MIT */
/** Classes of blocks, as memcheck has them: what the roots still hold, and what is lost. */
#ifndef ANALYZER_GRAPH_CLASSES_H
#define ANALYZER_GRAPH_CLASSES_H

#include "graph/mark.h"

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
 * belong to the one that memcheck would choose, which goes through the nodes in their order: a node
 * gets all that it leads to and no other has, and takes over what those have that it leads to.
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
 * The same in two steps, the second of which is not needed to know what is held. After the first
 * all lost nodes count as indirectly lost.
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

#endif
