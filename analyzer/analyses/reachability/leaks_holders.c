/* SPDX-License-Identifier: MIT */
/* Who holds the first block of each group that is in doubt: a root if one points at it, or else the
 * block with the lowest address that does. */
#include <stdlib.h>

#include "analyses/reachability/leaks_parts.h"

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

static size_t count_groups(const struct heap_leaks *leaks)
{
    size_t count = 0;
    for (int i = 0; i < KINDS_IN_DOUBT; i++)
        count += leaks->kinds[kinds_in_doubt[i]].count;
    return count;
}

/* Numbers the first blocks of all groups, and gives each group its holder. */
static void number_groups(const struct holders_search *search)
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
static struct heap_holder *take_holder(const struct holders_search *search, uint32_t node)
{
    uint32_t number = search->numbers[node];
    if (!number || search->are_found[number - 1])
        return NULL;
    search->are_found[number - 1] = true;
    return &search->holders[number - 1];
}

static void find_roots(struct holders_search *search)
{
    const struct heap_reach *reach = &search->leaks->reach;
    for (uint64_t i = 0; i < reach->graph.root_count; i++) {
        struct heap_holder *holder = take_holder(search, reach->graph.root_targets[i]);
        const struct heap_root_word *word = &reach->roots[reach->graph.root_ids[i]];
        if (!holder)
            continue;
        holder->region = word->region;
        holder->offset = word->offset;
        search->has_roots = true;
    }
}

static void holders_find_blocks(const struct holders_search *search)
{
    const struct graph *graph = &search->leaks->reach.graph;
    for (uint32_t source = 0; source < graph->node_count; source++) {
        for (uint64_t edge = graph->first[source]; edge < graph->first[source + 1]; edge++) {
            struct heap_holder *holder =
                graph->targets[edge] == source ? NULL : take_holder(search, graph->targets[edge]);
            if (holder)
                holder->block = heap_nodes_block(&search->leaks->reach.nodes, source);
        }
    }
}

/* Groups keep only holders that were found. */
static void drop_missing(const struct holders_search *search)
{
    size_t number = 0;
    for (int i = 0; i < KINDS_IN_DOUBT; i++) {
        struct heap_groups *groups = &search->leaks->leaks->kinds[kinds_in_doubt[i]];
        for (size_t k = 0; k < groups->count; k++, number++)
            if (!search->are_found[number])
                groups->items[k].holder = NULL;
    }
}

/* Reads the names of the places, which need the regions after the graph is gone. */
static enum ttd_status read_places(const struct holders_search *search,
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
    size_t count = count_groups(search->leaks);
    struct holders_search holders = {.leaks = search};
    if (!count)
        return TTD_OK;
    holders.numbers = calloc((size_t)search->reach.nodes.count + 1, sizeof *holders.numbers);
    holders.are_found = calloc(count, sizeof *holders.are_found);
    search->leaks->holders = holders.holders = calloc(count, sizeof *holders.holders);
    enum ttd_status status =
        holders.numbers && holders.are_found && holders.holders ? TTD_OK : TTD_ERROR_NO_MEMORY;
    if (status == TTD_OK) {
        number_groups(&holders);
        find_roots(&holders);
        holders_find_blocks(&holders);
        drop_missing(&holders);
        status = read_places(&holders, trace, error);
    }
    free(holders.numbers);
    free(holders.are_found);
    return status;
}
