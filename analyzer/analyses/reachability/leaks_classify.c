/* SPDX-License-Identifier: MIT */
/* The classes of leaks: by what holds them in the graph of a snapshot. */
#include "analyses/reachability/leaks_parts.h"
#include "base/grow.h"
#include "base/task.h"

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
 * itself belongs to its own total, and all others hang below it. */
static enum ttd_status add_total(const struct leaks_search *search,
                                 const struct graph_classes *classes, struct leaks_below *below,
                                 uint32_t node)
{
    const struct heap_nodes *nodes = &search->reach.nodes;
    uint32_t leader = classes->leaders ? classes->leaders[node] : GRAPH_NONE;
    if (leader == GRAPH_NONE || !search->is_leak[leader])
        return TTD_OK;
    struct heap_groups *groups = &search->leaks->kinds[HEAP_DEFINITELY_LOST];
    struct heap_block owner = heap_nodes_block(nodes, leader);
    uint64_t size = heap_nodes_size(nodes, node);
    const struct heap_group *group = heap_groups_add_total(groups, &owner, size);
    if (!group || node == leader)
        return TTD_OK;
    return leaks_below_add(below, (uint32_t)(group - groups->items), heap_nodes_stack(nodes, node),
                           size);
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
    return kind == HEAP_DEFINITELY_LOST ||
           (search->options.covering && kind == HEAP_INDIRECTLY_LOST);
}

/* One half of the nodes, and the groups of their blocks, by kind. */
struct half {
    const struct leaks_search *search;
    struct heap_groups *kinds;
};

static enum ttd_status group_half(void *context, size_t begin, size_t end)
{
    const struct half *half = context;
    const struct leaks_search *search = half->search;
    enum ttd_status status = TTD_OK;
    for (size_t node = begin; node < end && status == TTD_OK; node++) {
        if (!search->is_leak[node])
            continue;
        struct heap_block block = heap_nodes_block(&search->reach.nodes, (uint32_t)node);
        enum heap_leak_kind kind = kind_of(&search->reach.verdicts, (uint32_t)node);
        status = heap_groups_add(&half->kinds[kind], &block);
    }
    return status;
}

/* Adds the blocks of the nodes to the groups of their kinds. */
static enum ttd_status group(struct leaks_search *search)
{
    struct heap_groups kinds[HEAP_LEAK_KINDS];
    struct half first = {search, search->leaks->kinds}, second = {search, kinds};
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        heap_groups_init_like(&kinds[kind], &search->leaks->kinds[kind]);
    enum ttd_status status = halves_do(group_half, &first, &second, search->reach.nodes.count);
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++) {
        for (size_t i = 0; i < kinds[kind].count && status == TTD_OK; i++)
            status = heap_groups_add_sum(&search->leaks->kinds[kind], &kinds[kind].items[i]);
        heap_groups_free(&kinds[kind]);
    }
    return status;
}

static enum ttd_status list_dated(struct leaks_search *search)
{
    enum ttd_status status = TTD_OK;
    for (uint32_t node = 0; node < search->reach.nodes.count && status == TTD_OK; node++) {
        if (!search->is_leak[node] || !is_dated(search, kind_of(&search->reach.verdicts, node)))
            continue;
        struct heap_block block = heap_nodes_block(&search->reach.nodes, node);
        status = add_lost(search, &block);
    }
    return status;
}

static enum ttd_status sort_out(struct leaks_search *search)
{
    const struct graph_classes *classes = &search->reach.verdicts;
    enum ttd_status status = group(search);
    if (status == TTD_OK && search->tells_when)
        status = list_dated(search);
    struct leaks_below below = {.count = 0};
    map_init(&below.index);
    /* A total goes to the group of the leader, which exists by now. */
    for (uint32_t node = 0; node < search->reach.nodes.count && status == TTD_OK; node++) {
        if (search->is_leak[node])
            status = add_total(search, classes, &below, node);
    }
    leaks_below_end(&below, search->leaks);
    return status;
}

enum ttd_status leaks_classify(struct leaks_search *search, const struct heap_trace *trace,
                               struct ttd_error *error)
{
    struct heap_reach_options options = {.lists_inner = true};
    if (!search->leaks->snapshot.number)
        return TTD_OK;
    enum ttd_status status = heap_reach_read(&search->reach, trace, &options, error);
    /* Reading the references may have shown that the snapshot is incomplete. */
    search->leaks->snapshot = search->reach.snapshot;
    search->leaks->misplaced = search->reach.misplaced;
    if (status == TTD_OK)
        status = sort_out(search);
    if (status == TTD_OK)
        status = leaks_find_ways(search);
    return status == TTD_OK ? leaks_find_holders(search, trace, error) : status;
}
