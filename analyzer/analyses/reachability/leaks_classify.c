/* SPDX-License-Identifier: MIT */
/* The classes of leaks: by what holds them in the graph of a snapshot. */
#include "analyses/reachability/leaks_parts.h"
#include "base/grow.h"
#include "graph/arrays.h"

static enum heap_leak_kind kind_of(const struct graph_classes *classes, uint32_t node)
{
    static const enum heap_leak_kind kinds[] = {[GRAPH_REACHABLE] = HEAP_REACHABLE,
                                                [GRAPH_POSSIBLY_LOST] = HEAP_POSSIBLY_LOST,
                                                [GRAPH_INDIRECTLY_LOST] = HEAP_INDIRECTLY_LOST,
                                                [GRAPH_DEFINITELY_LOST] = HEAP_DEFINITELY_LOST};
    enum heap_leak_kind kind = kinds[graph_class_of(classes, node)];
    enum graph_holding holding = graph_holding_of(classes, node);
    if (kind != HEAP_REACHABLE || holding == GRAPH_HELD)
        return kind;
    return holding == GRAPH_HELD_WEAKLY ? HEAP_HELD_WEAKLY : HEAP_HELD_BY_STALE;
}

/* Adds a node to the total of the definitely lost block that it belongs to, its leader. The leader
 * itself belongs to its own total. */
static void add_total(const struct leaks_search *search, const struct graph_classes *classes,
                      uint32_t node)
{
    const struct heap_nodes *nodes = &search->reach.nodes;
    uint32_t leader = classes->leaders ? classes->leaders[node] : GRAPH_NONE;
    if (leader == GRAPH_NONE || !search->is_leak[leader])
        return;
    struct heap_block owner = heap_nodes_block(nodes, leader);
    heap_groups_add_total(&search->leaks->kinds[HEAP_DEFINITELY_LOST], &owner,
                          heap_nodes_size(nodes, node));
}

static enum ttd_status add_lost(struct leaks_search *search, const struct heap_block *block)
{
    struct heap_leaks *leaks = search->leaks;
    enum ttd_status status = grow_array((void **)&leaks->lost, &search->lost_capacity,
                                        leaks->lost_count + 1, sizeof *leaks->lost);
    if (status == TTD_OK)
        leaks->lost[leaks->lost_count++].block = *block;
    return status;
}

/* Whether a block is to be dated. Indirectly lost blocks were lost with the definitely lost one
 * that they belong to, so they are dated only if the caller asks for single blocks. */
static bool is_dated(const struct leaks_search *search, enum heap_leak_kind kind)
{
    return search->tells_when && (kind == HEAP_DEFINITELY_LOST ||
                                  (search->options.covering && kind == HEAP_INDIRECTLY_LOST));
}

static enum ttd_status sort_out(struct leaks_search *search, const struct graph_classes *classes)
{
    enum ttd_status status = TTD_OK;
    uint32_t count = search->reach.nodes.count;
    for (uint32_t node = 0; node < count && status == TTD_OK; node++) {
        if (!search->is_leak[node])
            continue;
        struct heap_block block = heap_nodes_block(&search->reach.nodes, node);
        enum heap_leak_kind kind = kind_of(classes, node);
        status = heap_groups_add(&search->leaks->kinds[kind], &block);
        if (status == TTD_OK && is_dated(search, kind))
            status = add_lost(search, &block);
    }
    /* Totals take a second pass: a total goes to the group of the leader, which must exist. */
    for (uint32_t node = 0; node < count && status == TTD_OK; node++) {
        if (search->is_leak[node])
            add_total(search, classes, node);
    }
    return status;
}

enum ttd_status leaks_classify(struct leaks_search *search, const struct heap_trace *trace,
                               struct ttd_error *error)
{
    struct heap_reach_options options = {.keeps_offsets = false};
    if (!search->leaks->snapshot.number)
        return TTD_OK;
    enum ttd_status status = heap_reach_read(&search->reach, trace, &options, error);
    /* Reading the references may have shown that the snapshot is incomplete. */
    search->leaks->snapshot = search->reach.snapshot;
    search->leaks->misplaced = search->reach.misplaced;
    return status == TTD_OK ? sort_out(search, &search->reach.verdicts) : status;
}
