/* SPDX-License-Identifier: MIT */
#include "reach/rules.h"

#include <stdlib.h>

#include "base/grow.h"

/* How many blocks of a call site are pointed at with an offset. */
struct site_offset {
    uint32_t blocks;
    /** The block that was counted last. */
    uint32_t node;
    /** Index of the site, and the offset. */
    uint32_t site;
    uint32_t offset;
};

struct site {
    uint32_t blocks;
    /** The offset at which most of its blocks are pointed at, by how many; 0 for none. */
    uint32_t offset;
    uint32_t offset_blocks;
};

struct rules {
    const struct reach_builder *builder;
    struct heap_reach *reach;
    /** Offsets of pointers behind the start, by target; those of node n are from first[n] on. */
    uint64_t *first;
    uint32_t *offsets;
    /** Index of a site by stack. */
    struct hash_map site_index;
    struct site *sites;
    size_t site_count;
    size_t site_capacity;
    /** Index of a pair by site and offset. */
    struct hash_map pair_index;
    struct site_offset *pairs;
    size_t pair_count;
    size_t pair_capacity;
};

static uint32_t root_offset(const struct heap_reach *reach, uint64_t root)
{
    uint64_t offset = reach->roots[reach->graph.root_ids[root]].target_offset;
    return offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX;
}

/* Whether a root is a pointer behind the start, and beyond doubt. */
static bool is_counted(const struct heap_reach *reach, uint64_t root)
{
    return !(reach->graph.root_flags[root] & GRAPH_STALE) && root_offset(reach, root) != 0;
}

/* Sorts the offsets of all pointers behind a start by their targets. */
static enum ttd_status sort_by_target(struct rules *rules)
{
    const struct heap_reach *reach = rules->reach;
    const struct graph *graph = &reach->graph;
    rules->first = calloc((size_t)graph->node_count + 2, sizeof *rules->first);
    if (!rules->first)
        return TTD_ERROR_NO_MEMORY;
    uint64_t *next = rules->first + 1;
    for (uint64_t i = 0; i < graph->edge_count; i++)
        next[graph->targets[i] + 1] += edge_offset_in_target(&reach->offsets, i) != 0;
    for (uint64_t i = 0; i < graph->root_count; i++)
        next[graph->root_targets[i] + 1] += is_counted(reach, i);
    for (uint32_t node = 0; node < graph->node_count; node++)
        next[node + 1] += next[node];
    rules->offsets = malloc((size_t)next[graph->node_count] * sizeof *rules->offsets + 1);
    if (!rules->offsets)
        return TTD_ERROR_NO_MEMORY;
    for (uint64_t i = 0; i < graph->edge_count; i++) {
        uint32_t offset = edge_offset_in_target(&reach->offsets, i);
        if (offset)
            rules->offsets[next[graph->targets[i]]++] = offset;
    }
    for (uint64_t i = 0; i < graph->root_count; i++) {
        if (is_counted(reach, i))
            rules->offsets[next[graph->root_targets[i]]++] = root_offset(reach, i);
    }
    return TTD_OK;
}

static enum ttd_status count_pair(struct rules *rules, uint32_t site, uint32_t offset,
                                  uint32_t node)
{
    uint32_t index = map_get(&rules->pair_index, site, offset);
    if (index == MAP_NONE) {
        index = (uint32_t)rules->pair_count;
        enum ttd_status status = grow_array((void **)&rules->pairs, &rules->pair_capacity,
                                            rules->pair_count + 1, sizeof *rules->pairs);
        if (status == TTD_OK)
            status = map_set(&rules->pair_index, site, offset, index);
        if (status != TTD_OK)
            return status;
        rules->pairs[rules->pair_count++] =
            (struct site_offset){.node = HEAP_NO_NODE, .site = site, .offset = offset};
    }
    struct site_offset *pair = &rules->pairs[index];
    pair->blocks += pair->node != node;
    pair->node = node;
    return TTD_OK;
}

static enum ttd_status site_of(struct rules *rules, ttd_id stack, uint32_t *site)
{
    *site = map_get(&rules->site_index, stack, 0);
    if (*site != MAP_NONE)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&rules->sites, &rules->site_capacity,
                                        rules->site_count + 1, sizeof *rules->sites);
    if (status == TTD_OK)
        status = map_set(&rules->site_index, stack, 0, (uint32_t)rules->site_count);
    if (status != TTD_OK)
        return status;
    *site = (uint32_t)rules->site_count;
    rules->sites[rules->site_count++] = (struct site){.blocks = 0};
    return TTD_OK;
}

/* Finds the offset of each call site at which most of its blocks are pointed at. */
static enum ttd_status find_sites(struct rules *rules)
{
    const struct heap_nodes *nodes = &rules->reach->nodes;
    enum ttd_status status = TTD_OK;
    for (uint32_t node = 0; node < nodes->count && status == TTD_OK; node++) {
        uint32_t site;
        status = site_of(rules, heap_nodes_stack(nodes, node), &site);
        if (status != TTD_OK)
            break;
        rules->sites[site].blocks++;
        for (uint64_t i = rules->first[node]; i < rules->first[node + 1] && status == TTD_OK; i++)
            status = count_pair(rules, site, rules->offsets[i], node);
    }
    for (size_t i = 0; i < rules->pair_count && status == TTD_OK; i++) {
        struct site *site = &rules->sites[rules->pairs[i].site];
        if (rules->pairs[i].blocks <= site->offset_blocks)
            continue;
        site->offset = rules->pairs[i].offset;
        site->offset_blocks = rules->pairs[i].blocks;
    }
    return status;
}

static bool has_class_word(const struct rules *rules, uint32_t node, uint32_t offset)
{
    const struct reach_class_word *words = rules->builder->class_words;
    size_t low = 0, high = rules->builder->class_word_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (words[middle].node < node ||
            (words[middle].node == node && words[middle].offset < offset))
            low = middle + 1;
        else
            high = middle;
    }
    return low < rules->builder->class_word_count && words[low].node == node &&
           words[low].offset == offset;
}

/* Whether a pointer behind the start of a block owns it. */
static bool owns(const struct rules *rules, uint32_t node, uint32_t offset)
{
    const struct heap_reach *reach = rules->reach;
    const struct heap_nodes *nodes = &reach->nodes;
    if ((offset == 8 || offset == 16) && reach_is_from_new_array(nodes, node))
        return true;
    if (reach->node_classes && reach->node_classes[node] && has_class_word(rules, node, offset))
        return true;
    const struct site *site =
        &rules->sites[map_get(&rules->site_index, heap_nodes_stack(nodes, node), 0)];
    return site->blocks >= REACH_SITE_BLOCKS && site->offset == offset && offset < UINT32_MAX &&
           (uint64_t)site->offset_blocks * 10 >= (uint64_t)site->blocks * 9;
}

static void set_flags(const struct rules *rules)
{
    struct heap_reach *reach = rules->reach;
    struct graph *graph = &reach->graph;
    for (uint64_t i = 0; i < graph->edge_count; i++) {
        uint32_t offset = edge_offset_in_target(&reach->offsets, i);
        if (offset && !owns(rules, graph->targets[i], offset))
            graph->flags[i] |= GRAPH_INTERIOR;
    }
    for (uint64_t i = 0; i < graph->root_count; i++) {
        uint32_t offset = root_offset(reach, i);
        if (offset && !owns(rules, graph->root_targets[i], offset))
            graph->root_flags[i] |= GRAPH_INTERIOR;
    }
}

/* Whether any pointer points behind the start of a block. */
static bool has_inner(const struct heap_reach *reach)
{
    for (uint64_t i = 0; i < reach->graph.edge_count; i++) {
        if (edge_offset_in_target(&reach->offsets, i))
            return true;
    }
    for (uint64_t i = 0; i < reach->graph.root_count; i++) {
        if (root_offset(reach, i))
            return true;
    }
    return false;
}

enum ttd_status reach_rules_apply(const struct reach_builder *builder)
{
    struct rules rules = {.builder = builder, .reach = builder->reach};
    if (!has_inner(builder->reach))
        return TTD_OK;
    map_init(&rules.site_index);
    map_init(&rules.pair_index);
    enum ttd_status status = sort_by_target(&rules);
    if (status == TTD_OK)
        status = find_sites(&rules);
    if (status == TTD_OK)
        set_flags(&rules);
    free(rules.first);
    free(rules.offsets);
    free(rules.sites);
    free(rules.pairs);
    map_free(&rules.site_index);
    map_free(&rules.pair_index);
    return status;
}
