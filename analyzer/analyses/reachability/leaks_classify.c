/* SPDX-License-Identifier: MIT */
/* The classes of leaks: by their holders in the graph of a snapshot. */
#include <stdlib.h>

#include "analyses/reachability/leaks_parts.h"
#include "base/grow.h"
#include "base/task.h"

/* Blocks held by definitely lost groups, by call site. */

/* Finds the item of a group and stack, or appends it. */
static enum ttd_status classify_find_item(struct leaks_below *below, uint32_t group, ttd_id stack)
{
    /* 0 in the second place would take an array as long as the largest identifier. */
    uint32_t index = map_get(&below->index, stack, (uint64_t)group + 1);
    if (index != MAP_NONE) {
        below->latest = index;
        return TTD_OK;
    }
    enum ttd_status status = grow_array((void **)&below->items, &below->capacity, below->count + 1,
                                        sizeof *below->items);
    if (status == TTD_OK)
        status = grow_array((void **)&below->groups, &below->group_capacity, below->count + 1,
                            sizeof *below->groups);
    if (status == TTD_OK)
        status = map_set(&below->index, stack, (uint64_t)group + 1, (uint32_t)below->count);
    if (status != TTD_OK)
        return status;
    below->latest = below->count++;
    below->groups[below->latest] = group;
    below->items[below->latest] = (struct heap_below){.stack = stack};
    return TTD_OK;
}

enum ttd_status leaks_below_add(struct leaks_below *below, uint32_t group, ttd_id stack,
                                uint64_t size)
{
    /* Neighbours are often of one list. */
    bool is_latest = below->count && below->groups[below->latest] == group &&
                     below->items[below->latest].stack == stack;
    enum ttd_status status = is_latest ? TTD_OK : classify_find_item(below, group, stack);
    if (status != TTD_OK)
        return status;
    struct heap_below *item = &below->items[below->latest];
    item->blocks++;
    item->bytes = heap_add(item->bytes, size);
    return TTD_OK;
}

void leaks_below_end(struct leaks_below *below, struct heap_leaks *leaks)
{
    struct heap_group *groups = leaks->kinds[HEAP_DEFINITELY_LOST].items;
    for (size_t i = 0; i < below->count; i++) {
        struct heap_group *group = &groups[below->groups[i]];
        struct heap_below *item = &below->items[i];
        item->next = group->below ? group->below->next : item;
        if (group->below)
            group->below->next = item;
        group->below = item;
    }
    leaks->below = below->items;
    map_free(&below->index);
    free(below->groups);
}

/* How possibly lost blocks are held: by a pointer into the block, or otherwise. */

/* Ways by node. */
struct ways_search {
    const struct heap_reach *reach;
    struct heap_way *ways;
};

static bool leaks_ways_is_possible(const struct heap_reach *reach, uint32_t node)
{
    return graph_class_of(&reach->verdicts, node) == GRAPH_POSSIBLY_LOST;
}

/* Sees a pointer that does not own its target. Of several ways the one with the smallest offset is
 * taken: the likeliest owner. */
static void leaks_ways_see(const struct ways_search *search, uint32_t target, uint64_t offset)
{
    struct heap_way *way = &search->ways[target];
    uint32_t shown = offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX;
    if (!leaks_ways_is_possible(search->reach, target))
        return;
    if (way->kind != HEAP_WAY_INTO || shown < way->offset)
        *way = (struct heap_way){HEAP_WAY_INTO, shown};
}

static void leaks_ways_see_roots(const struct ways_search *search)
{
    const struct heap_reach *reach = search->reach;
    const struct graph *graph = &reach->graph;
    for (uint64_t i = 0; i < graph->root_count; i++) {
        const struct heap_root_word *word = &reach->roots[graph->root_ids[i]];
        const struct ttd_region *region = heap_reach_region(reach, word->region);
        struct heap_way *way = &search->ways[graph->root_targets[i]];
        if (!(graph->root_flags[i] & GRAPH_INTERIOR))
            continue;
        if (region && region->kind != TTD_REGION_HEAP)
            leaks_ways_see(search, graph->root_targets[i], word->target_offset);
        else if (way->kind == HEAP_WAY_NONE)
            way->kind = HEAP_WAY_OUTSIDE;
    }
}

/* Pointers of lost blocks hold nothing. */
static void leaks_ways_see_edges(const struct ways_search *search)
{
    const struct heap_reach *reach = search->reach;
    const struct graph *graph = &reach->graph;
    uint32_t source = 0;
    for (size_t i = 0; i < reach->inner_count; i++) {
        uint64_t edge = reach->inner[i].edge;
        while (graph->first[source + 1] <= edge)
            source++;
        if (reach->verdicts.marks[source] && source != graph->targets[edge])
            leaks_ways_see(search, graph->targets[edge], reach->inner[i].offset);
    }
}

enum ttd_status leaks_find_ways(struct leaks_search *search)
{
    const struct heap_reach *reach = &search->reach;
    struct heap_groups *groups = &search->leaks->kinds[HEAP_POSSIBLY_LOST];
    struct ways_search ways = {.reach = reach};
    if (!groups->count)
        return TTD_OK;
    ways.ways = calloc((size_t)reach->nodes.count + 1, sizeof *ways.ways);
    if (!ways.ways)
        return TTD_ERROR_NO_MEMORY;
    leaks_ways_see_roots(&ways);
    leaks_ways_see_edges(&ways);
    for (uint32_t node = 0; node < reach->nodes.count; node++) {
        if (!search->is_leak[node] || !leaks_ways_is_possible(reach, node))
            continue;
        struct heap_block block = heap_nodes_block(&reach->nodes, node);
        struct heap_way way = ways.ways[node];
        if (way.kind == HEAP_WAY_NONE)
            way.kind = HEAP_WAY_BELOW;
        heap_way_merge(&heap_groups_find(groups, &block)->way, way);
    }
    free(ways.ways);
    return TTD_OK;
}

static enum heap_leak_kind classify_kind_of(const struct graph_classes *classes, uint32_t node)
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
static enum ttd_status classify_add_total(const struct leaks_search *search,
                                          const struct graph_classes *classes,
                                          struct leaks_below *below, uint32_t node)
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

static enum ttd_status classify_add_lost(struct leaks_search *search,
                                         const struct heap_block *block)
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
static bool classify_is_dated(const struct leaks_search *search, enum heap_leak_kind kind)
{
    return kind == HEAP_DEFINITELY_LOST ||
           (search->options.covering && kind == HEAP_INDIRECTLY_LOST);
}

/* One half of the nodes, and the groups of their blocks, by kind. */
struct half {
    const struct leaks_search *search;
    struct heap_groups *kinds;
};

static enum ttd_status classify_group_half(void *context, size_t begin, size_t end)
{
    const struct half *half = context;
    const struct leaks_search *search = half->search;
    enum ttd_status status = TTD_OK;
    for (size_t node = begin; node < end && status == TTD_OK; node++) {
        if (!search->is_leak[node])
            continue;
        struct heap_block block = heap_nodes_block(&search->reach.nodes, (uint32_t)node);
        enum heap_leak_kind kind = classify_kind_of(&search->reach.verdicts, (uint32_t)node);
        status = heap_groups_add(&half->kinds[kind], &block);
    }
    return status;
}

/* Adds the blocks of the nodes to the groups of their kinds. */
static enum ttd_status classify_group(struct leaks_search *search)
{
    struct heap_groups kinds[HEAP_LEAK_KINDS];
    struct half first = {search, search->leaks->kinds}, second = {search, kinds};
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++)
        heap_groups_init_like(&kinds[kind], &search->leaks->kinds[kind]);
    enum ttd_status status =
        halves_do(classify_group_half, &first, &second, search->reach.nodes.count);
    for (int kind = 0; kind < HEAP_LEAK_KINDS; kind++) {
        for (size_t i = 0; i < kinds[kind].count && status == TTD_OK; i++)
            status = heap_groups_add_sum(&search->leaks->kinds[kind], &kinds[kind].items[i]);
        heap_groups_free(&kinds[kind]);
    }
    return status;
}

static enum ttd_status classify_list_dated(struct leaks_search *search)
{
    enum ttd_status status = TTD_OK;
    for (uint32_t node = 0; node < search->reach.nodes.count && status == TTD_OK; node++) {
        if (!search->is_leak[node] ||
            !classify_is_dated(search, classify_kind_of(&search->reach.verdicts, node)))
            continue;
        struct heap_block block = heap_nodes_block(&search->reach.nodes, node);
        status = classify_add_lost(search, &block);
    }
    return status;
}

static enum ttd_status classify_list_doubtful(struct leaks_search *search)
{
    struct heap_leaks *leaks = search->leaks;
    enum ttd_status status = TTD_OK;
    for (uint32_t node = 0; node < search->reach.nodes.count && status == TTD_OK; node++) {
        enum heap_leak_kind kind = classify_kind_of(&search->reach.verdicts, node);
        if (!search->is_leak[node] || kind >= HEAP_REACHABLE)
            continue;
        status = grow_array((void **)&leaks->doubtful, &search->doubtful_capacity,
                            leaks->doubtful_count + 1, sizeof *leaks->doubtful);
        if (status != TTD_OK)
            break;
        struct heap_block block = heap_nodes_block(&search->reach.nodes, node);
        leaks->doubtful[leaks->doubtful_count++] =
            (struct heap_doubtful_block){.event = block.event,
                                         .address = block.address,
                                         .size = block.size,
                                         .stack = block.stack,
                                         .kind = kind};
    }
    return status;
}

static enum ttd_status classify_sort_out(struct leaks_search *search)
{
    const struct graph_classes *classes = &search->reach.verdicts;
    enum ttd_status status = classify_group(search);
    if (status == TTD_OK && search->tells_when)
        status = classify_list_dated(search);
    if (status == TTD_OK && search->options.lists_doubtful)
        status = classify_list_doubtful(search);
    struct leaks_below below = {.count = 0};
    map_init(&below.index);
    /* A total goes to the group of the leader; it exists by now. */
    for (uint32_t node = 0; node < search->reach.nodes.count && status == TTD_OK; node++) {
        if (search->is_leak[node])
            status = classify_add_total(search, classes, &below, node);
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
        status = classify_sort_out(search);
    if (status == TTD_OK)
        status = leaks_find_ways(search);
    return status == TTD_OK ? leaks_find_holders(search, trace, error) : status;
}

/* ---- The holder of the first block of each group that is in doubt ---- */

/* It is a root if one points at the block, or else the block with the lowest address that does. */

static const enum heap_leak_kind kinds_in_doubt[] = {HEAP_POSSIBLY_LOST, HEAP_HELD_BY_STALE,
                                                     HEAP_HELD_WEAKLY};
enum { KINDS_IN_DOUBT = sizeof kinds_in_doubt / sizeof kinds_in_doubt[0] };

struct holders_search {
    struct leaks_search *leaks;
    /** By node: 1 more than the index of its holder; 0 if none is wanted. */
    uint32_t *numbers;
    struct heap_holder *holders;
    bool *are_found;
    bool has_roots;
};

static size_t classify_count_groups(const struct heap_leaks *leaks)
{
    size_t count = 0;
    for (int i = 0; i < KINDS_IN_DOUBT; i++)
        count += leaks->kinds[kinds_in_doubt[i]].count;
    return count;
}

/* Numbers the first blocks of all groups, and gives each group its holder. */
static void classify_number_groups(const struct holders_search *search)
{
    uint32_t number = 0;
    for (int i = 0; i < KINDS_IN_DOUBT; i++) {
        struct heap_groups *groups = &search->leaks->leaks->kinds[kinds_in_doubt[i]];
        for (size_t k = 0; k < groups->count; k++) {
            struct heap_group *group = &groups->items[k];
            struct heap_nodes *nodes = &search->leaks->reach.nodes;
            uint32_t node = heap_nodes_at(nodes, group->address);
            group->holder = &search->holders[number++];
            /* A block that lies in another one may begin at the same address. */
            if (node != HEAP_NO_NODE &&
                ttd_position_compare(heap_nodes_allocated(nodes, node), group->first) == 0)
                search->numbers[node] = number;
        }
    }
}

/* Takes the holder of a node, if one is wanted and it has none. */
static struct heap_holder *classify_take_holder(const struct holders_search *search, uint32_t node)
{
    uint32_t number = search->numbers[node];
    if (!number || search->are_found[number - 1])
        return NULL;
    search->are_found[number - 1] = true;
    return &search->holders[number - 1];
}

static void classify_find_roots(struct holders_search *search)
{
    const struct heap_reach *reach = &search->leaks->reach;
    for (uint64_t i = 0; i < reach->graph.root_count; i++) {
        struct heap_holder *holder = classify_take_holder(search, reach->graph.root_targets[i]);
        const struct heap_root_word *word = &reach->roots[reach->graph.root_ids[i]];
        if (!holder)
            continue;
        holder->region = word->region;
        holder->offset = word->offset;
        search->has_roots = true;
    }
}

static void classify_holders_find_blocks(const struct holders_search *search)
{
    const struct graph *graph = &search->leaks->reach.graph;
    for (uint32_t source = 0; source < graph->node_count; source++) {
        for (uint64_t edge = graph->first[source]; edge < graph->first[source + 1]; edge++) {
            struct heap_holder *holder = graph->targets[edge] == source
                                             ? NULL
                                             : classify_take_holder(search, graph->targets[edge]);
            if (holder)
                holder->block = heap_nodes_block(&search->leaks->reach.nodes, source);
        }
    }
}

/* Groups keep only holders that were found. */
static void classify_drop_missing(const struct holders_search *search)
{
    size_t number = 0;
    for (int i = 0; i < KINDS_IN_DOUBT; i++) {
        struct heap_groups *groups = &search->leaks->leaks->kinds[kinds_in_doubt[i]];
        for (size_t k = 0; k < groups->count; k++, number++)
            if (!search->are_found[number])
                groups->items[k].holder = NULL;
    }
}

/* Reads the names of the places. They need the regions after the graph is gone. */
static enum ttd_status classify_read_places(const struct holders_search *search,
                                            const struct heap_trace *trace, struct ttd_error *error)
{
    struct heap_leaks *leaks = search->leaks->leaks;
    struct heap_reach *reach = &search->leaks->reach;
    if (!search->has_roots)
        return TTD_OK;
    enum ttd_status status = heap_places_read(trace, reach, &leaks->places, error);
    if (status != TTD_OK)
        return status;
    leaks->regions = reach->regions;
    reach->regions = NULL;
    reach->region_count = reach->region_capacity = 0;
    return TTD_OK;
}

enum ttd_status leaks_find_holders(struct leaks_search *search, const struct heap_trace *trace,
                                   struct ttd_error *error)
{
    size_t count = classify_count_groups(search->leaks);
    struct holders_search holders = {.leaks = search};
    if (!count)
        return TTD_OK;
    holders.numbers = calloc((size_t)search->reach.nodes.count + 1, sizeof *holders.numbers);
    holders.are_found = calloc(count, sizeof *holders.are_found);
    search->leaks->holders = holders.holders = calloc(count, sizeof *holders.holders);
    enum ttd_status status =
        holders.numbers && holders.are_found && holders.holders ? TTD_OK : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        classify_number_groups(&holders);
        classify_find_roots(&holders);
        classify_holders_find_blocks(&holders);
        classify_drop_missing(&holders);
        status = classify_read_places(&holders, trace, error);
    }
    free(holders.numbers);
    free(holders.are_found);
    return status;
}
