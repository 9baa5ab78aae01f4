/* SPDX-License-Identifier: MIT */
/*
 * Finds leaks in these steps:
 *
 * 1. replay() stops at the position of the snapshot, where the live blocks become the nodes of a
 *    graph, and goes on to the position asked for.
 * 2. collect() marks the nodes whose blocks are still live there. Those are the leaks to classify;
 *    blocks without a node are younger than the snapshot.
 * 3. classify() reads the references and classifies the nodes.
 * 4. find_when() looks at earlier snapshots.
 *
 * The table of live blocks is released before the graph gets its edges. So the two large structures
 * are never in memory together.
 */
#include "analyses/reachability/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "analyses/reachability/leaks_when.h"
#include "base/grow.h"
#include "graph/arrays.h"
#include "graph/classes.h"
#include "heap/locate.h"
#include "heap/strays.h"

struct search {
    struct heap_leaks *leaks;
    const struct heap_leaks_range *allocated;
    const struct heap_address_range *covering;
    const struct heap_islands *islands;
    bool tells_when;
    /** The parents of heaps; valid in collect(). */
    const struct heap_parents *parents;
    struct heap_kept kept;
    struct heap_reach reach;
    /** By node: its block is live at the position asked for, and is one of those asked for. */
    bool *is_leak;
    struct heap_snapshots snapshots;
    size_t lost_capacity;
    /** Number of strays at the position of the snapshot: see heap_count_strays(). */
    uint64_t strays;
};

static bool is_wanted(const struct search *search, const struct heap_block *block)
{
    const struct heap_leaks_range *range = search->allocated;
    const struct heap_address_range *covering = search->covering;
    if (range && (ttd_position_compare(block->allocated, range->first) < 0 ||
                  ttd_position_compare(block->allocated, range->last) > 0))
        return false;
    return !covering || heap_block_covers(block, covering->first, covering->last);
}

static bool is_unknown(const struct search *search, const struct heap_block *block)
{
    return heap_is_unknown(block->allocated, search->leaks->outcome.unknown_before);
}

static void count_nested(struct search *search, const struct heap_block *block)
{
    if (heap_parents_get(search->parents, block->heap) == TTD_NONE)
        return;
    search->leaks->nested_blocks++;
    search->leaks->nested_bytes = add_saturated(search->leaks->nested_bytes, block->size);
}

/* Adds a block that is live at the position asked for and that no runtime keeps. Its kind is known
 * now, or its node is marked. */
static enum ttd_status add(void *context, const struct heap_block *block)
{
    struct search *search = context;
    if (!is_wanted(search, block))
        return TTD_OK;
    count_nested(search, block);
    if (is_unknown(search, block))
        return heap_groups_add(&search->leaks->kinds[HEAP_UNKNOWN], block);
    uint32_t node = search->is_leak ? heap_nodes_of(&search->reach.nodes, block) : HEAP_NO_NODE;
    /* Not in the snapshot: the block is younger, or there is no snapshot. */
    if (node == HEAP_NO_NODE)
        return heap_groups_add(&search->leaks->kinds[HEAP_NOT_SEEN], block);
    search->is_leak[node] = true;
    return TTD_OK;
}

static enum ttd_status collect_live(struct search *search, const struct heap_live *live)
{
    size_t cursor = 0;
    const struct heap_block *block;
    enum ttd_status status = TTD_OK;
    while (status == TTD_OK && (block = heap_live_each(live, &cursor))) {
        if (!heap_islands_want_block(search->islands, block))
            continue;
        status = heap_kept_may_have(&search->kept, block) ? heap_kept_defer(&search->kept, block)
                                                          : add(search, block);
    }
    return status;
}

/* Does the same as collect_live() where the nodes are the live blocks: at the end of a trace, when
 * no event follows the snapshot. Then no block needs to be looked up, and the table needs no index.
 */
static enum ttd_status collect_nodes(struct search *search)
{
    const struct heap_nodes *nodes = &search->reach.nodes;
    enum ttd_status status = TTD_OK;
    for (uint32_t node = 0; node < nodes->count && status == TTD_OK; node++) {
        struct heap_block block = heap_nodes_block(nodes, node);
        if (!heap_islands_want_block(search->islands, &block))
            continue;
        if (heap_kept_may_have(&search->kept, &block))
            status = heap_kept_defer(&search->kept, &block);
        else if (is_unknown(search, &block))
            status = add(search, &block);
        else if (is_wanted(search, &block)) {
            count_nested(search, &block);
            search->is_leak[node] = true;
        }
    }
    return status;
}

/* Collects the live blocks. Those that a runtime may keep come last, because it must be known which
 * of them are live at the end. */
static enum ttd_status collect(struct search *search, struct heap_arrival *arrival,
                               bool are_nodes_live, struct ttd_error *error)
{
    struct heap_kept *kept = &search->kept;
    struct heap_live *live = &arrival->cursor.replay.live;
    search->leaks->outcome = heap_arrival_outcome(arrival);
    if (search->leaks->outcome.counts.strays < search->strays)
        search->leaks->outcome.counts.strays = search->strays;
    search->parents = &live->parents;
    enum ttd_status status = are_nodes_live ? collect_nodes(search) : collect_live(search, live);
    if (status == TTD_OK && kept->count)
        status = heap_live_make_index(live);
    if (status == TTD_OK)
        status =
            heap_kept_decide(kept, &arrival->cursor, &search->leaks->runtime, add, search, error);
    return status;
}

static enum ttd_status choose_snapshot(struct search *search, const struct heap_trace *trace,
                                       struct ttd_position at, struct ttd_error *error)
{
    enum ttd_status status = heap_snapshots_find(trace, &search->snapshots, error);
    if (status != TTD_OK)
        return status;
    const struct ttd_snapshot *snapshot =
        heap_snapshots_before(&search->snapshots, at, TTD_SNAPSHOT_REFERENCES);
    if (snapshot)
        search->leaks->snapshot = *snapshot;
    search->tells_when &= search->covering || search->snapshots.count > 1;
    return TTD_OK;
}

static enum ttd_status replay(struct search *search, const struct heap_trace *trace,
                              struct ttd_position at, struct ttd_error *error)
{
    struct heap_arrival arrival;
    const struct ttd_snapshot *snapshot = &search->leaks->snapshot;
    struct heap_route route = {.to = snapshot->number ? snapshot->position : at};
    struct heap_replay *replay = &arrival.cursor.replay;
    bool is_over = false;
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    if (status == TTD_OK && snapshot->number) {
        is_over = arrival.reached_end && !replay->queue.count;
        search->strays = heap_count_strays(&replay->live);
        status = heap_reach_begin(&search->reach, snapshot, &replay->live);
        search->is_leak = calloc((size_t)search->reach.nodes.count + 1, sizeof *search->is_leak);
        if (status == TTD_OK && !search->is_leak)
            status = TTD_ERROR_NO_MEMORY;
        if (status == TTD_OK && !is_over)
            status = heap_live_make_index(&replay->live);
        if (status == TTD_OK && !is_over)
            status = heap_replay_on(&arrival, at, error);
    }
    if (status == TTD_OK)
        status = collect(search, &arrival, is_over, error);
    heap_arrival_free(&arrival);
    return status;
}

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
static void add_total(const struct search *search, const struct graph_classes *classes,
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

static enum ttd_status add_lost(struct search *search, const struct heap_block *block)
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
static bool is_dated(const struct search *search, enum heap_leak_kind kind)
{
    return search->tells_when &&
           (kind == HEAP_DEFINITELY_LOST || (search->covering && kind == HEAP_INDIRECTLY_LOST));
}

static enum ttd_status sort_out(struct search *search, const struct graph_classes *classes)
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

static enum ttd_status classify(struct search *search, const struct heap_trace *trace,
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

/* Finds when lost blocks were lost. */
static enum ttd_status find_when(struct search *search, const struct heap_trace *trace,
                                 struct ttd_error *error)
{
    struct heap_leaks *leaks = search->leaks;
    if (!leaks->lost_count)
        return TTD_OK;
    heap_reach_free(&search->reach);
    return heap_leaks_date(leaks, trace, &search->snapshots, search->covering != NULL, error);
}

static enum ttd_status sort(struct heap_leaks *leaks)
{
    enum ttd_status status = heap_groups_sort(&leaks->runtime.groups);
    for (int kind = 0; kind < HEAP_LEAK_KINDS && status == TTD_OK; kind++)
        status = heap_groups_sort(&leaks->kinds[kind]);
    return status;
}

static void init(struct heap_leaks *leaks, const struct heap_leaks_options *options)
{
    memset(leaks, 0, sizeof *leaks);
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++) {
        heap_groups_init(&leaks->kinds[kind]);
        leaks->kinds[kind].split = options->split;
        leaks->kinds[kind].classes = options->classes;
        leaks->kinds[kind].kind = (uint8_t)kind;
    }
}

enum ttd_status heap_leaks_find(const struct heap_trace *trace,
                                const struct heap_leaks_options *options, struct heap_leaks *leaks,
                                struct ttd_error *error)
{
    struct search search = {.leaks = leaks,
                            .allocated = options->allocated,
                            .covering = options->covering,
                            .islands = options->islands,
                            .tells_when = options->tells_when};
    init(leaks, options);
    enum ttd_status status =
        heap_kept_read(&search.kept, trace, options->split, &leaks->runtime, error);
    leaks->runtime.groups.classes = options->classes;
    if (status == TTD_OK)
        status = choose_snapshot(&search, trace, options->at, error);
    if (status == TTD_OK)
        status = replay(&search, trace, options->at, error);
    if (status == TTD_OK)
        status = classify(&search, trace, error);
    if (status == TTD_OK)
        status = find_when(&search, trace, error);
    if (status == TTD_OK)
        status = sort(leaks);
    heap_kept_free(&search.kept);
    heap_reach_free(&search.reach);
    heap_snapshots_free(&search.snapshots);
    free(search.is_leak);
    if (status != TTD_OK)
        heap_leaks_free(leaks);
    return status;
}

void heap_leaks_free(struct heap_leaks *leaks)
{
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        heap_groups_free(&leaks->kinds[kind]);
    heap_groups_free(&leaks->runtime.groups);
    free(leaks->lost_ranges);
    free(leaks->lost);
    leaks->lost_ranges = NULL;
    leaks->lost = NULL;
}

uint64_t heap_leaks_blocks(const struct heap_leaks *leaks)
{
    uint64_t blocks = 0;
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        blocks += leaks->kinds[kind].blocks;
    return blocks;
}
