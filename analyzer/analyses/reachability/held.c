/* SPDX-License-Identifier: MIT */
#include "analyses/reachability/retained.h"

#include <stdlib.h>

#include "base/task.h"
#include "base/table.h"
#include "heap/site_table.h"

/* Finds the group of a root, or adds one. Groups are keyed by variable, by frame of a stack, or by
 * region where a root is in neither. */
static enum ttd_status held_find_group(struct heap_held *held, struct hash_map *index,
                                       const struct heap_root_word *word, uint32_t *group)
{
    struct heap_place place = heap_place_of(&held->places, word->region, word->offset);
    uint64_t part = place.variable ? (uint64_t)(place.variable - held->places.variables) + 1
                    : place.stack  ? place.frame + 1
                                   : 0;
    uint64_t region = place.variable ? 0 : word->region;
    *group = map_get(index, part, region);
    if (*group != MAP_NONE)
        return TTD_OK;
    *group = held->group_count;
    held->groups[held->group_count++] = (struct heap_root_group){.place = place};
    return map_set(index, part, region, *group);
}

static enum ttd_status held_make_groups(struct heap_held *held)
{
    const struct graph *graph = &held->reach.graph;
    struct hash_map index;
    enum ttd_status status = TTD_OK;
    /* There are at most as many groups as roots. One more is allocated because calloc() of nothing
     * may return NULL. */
    held->groups = calloc((size_t)graph->root_count + 1, sizeof *held->groups);
    held->root_groups = calloc((size_t)graph->root_count + 1, sizeof *held->root_groups);
    if (!held->groups || !held->root_groups)
        return TTD_ERROR_NO_MEMORY;
    map_init(&index);
    for (uint64_t i = 0; i < graph->root_count && status == TTD_OK; i++) {
        const struct heap_root_word *word = &held->reach.roots[graph->root_ids[i]];
        status = held_find_group(held, &index, word, &held->root_groups[i]);
        if (status == TTD_OK)
            held->groups[held->root_groups[i]].words++;
    }
    map_free(&index);
    return status;
}

static void held_sum_up(struct heap_held *held)
{
    for (uint32_t node = 0; node < held->reach.nodes.count; node++) {
        uint64_t size = heap_nodes_size(&held->reach.nodes, node);
        held->blocks++;
        held->bytes = heap_add(held->bytes, size);
        /* A node in the tree retains at least itself, so 0 means that no root leads to the block.
         */
        if (graph_retained_blocks(&held->dominators, node))
            continue;
        held->unheld_blocks++;
        held->unheld_bytes = heap_add(held->unheld_bytes, size);
    }
}

/* Bytes of the sizes. There is one more than blocks, since there may be none. */
static size_t held_sizes_bytes(const struct heap_held *held)
{
    return ((size_t)held->reach.nodes.count + 1) * sizeof(uint64_t);
}

/* The blocks, and their sizes. */
struct sizing {
    const struct heap_nodes *nodes;
    uint64_t *sizes;
};

static enum ttd_status held_get_sizes(void *context, size_t begin, size_t end)
{
    const struct sizing *sizing = context;
    for (size_t node = begin; node < end; node++)
        sizing->sizes[node] = heap_nodes_size(sizing->nodes, (uint32_t)node);
    return TTD_OK;
}

uint64_t *heap_held_sizes(const struct heap_held *held)
{
    struct sizing sizing = {&held->reach.nodes, table_resize(NULL, 0, held_sizes_bytes(held))};
    if (sizing.sizes)
        (void)halves_do(held_get_sizes, &sizing, &sizing, held->reach.nodes.count);
    return sizing.sizes;
}

void heap_held_free_sizes(const struct heap_held *held, uint64_t *sizes)
{
    if (sizes)
        table_free(sizes, held_sizes_bytes(held));
}

static enum ttd_status held_dominate(struct heap_held *held)
{
    uint64_t *sizes = heap_held_sizes(held);
    if (!sizes)
        return TTD_ERROR_NO_MEMORY;
    struct graph_dominators_query query = {.groups = held->root_groups,
                                           .group_count = held->group_count};
    enum ttd_status status = graph_dominate(&held->reach.graph, &query, sizes, &held->dominators);
    heap_held_free_sizes(held, sizes);
    return status;
}

/* Finds the places and the tree of a graph, and keeps nothing on failure. */
static enum ttd_status held_find_tree(const struct heap_trace *trace, struct heap_held *held,
                                      struct ttd_error *error)
{
    enum ttd_status status = TTD_OK;
    held->outcome = held->reach.outcome;
    if (held->reach.snapshot.number)
        status = heap_places_read(trace, &held->reach, &held->places, error);
    if (status == TTD_OK && held->reach.snapshot.number)
        status = held_make_groups(held);
    if (status == TTD_OK && held->reach.snapshot.number)
        status = held_dominate(held);
    if (status == TTD_OK)
        held_sum_up(held);
    else
        heap_held_free(held);
    return status;
}

enum ttd_status heap_held_find(const struct heap_trace *trace, struct ttd_position position,
                               struct heap_held *held, struct ttd_error *error)
{
    struct heap_reach_options options = {.at = position, .omits_verdicts = true};
    *held = (struct heap_held){.blocks = 0};
    enum ttd_status status = heap_reach_find(trace, &options, &held->reach, error);
    return status == TTD_OK ? held_find_tree(trace, held, error) : status;
}

enum ttd_status heap_held_build(const struct heap_trace *trace, struct heap_reach *reach,
                                struct heap_held *held, struct ttd_error *error)
{
    struct heap_reach_options options = {.omits_verdicts = true};
    *held = (struct heap_held){.reach = *reach};
    *reach = (struct heap_reach){.class_count = 0};
    enum ttd_status status = heap_reach_read(&held->reach, trace, &options, error);
    if (status == TTD_OK)
        return held_find_tree(trace, held, error);
    heap_held_free(held);
    return status;
}

void heap_held_free(struct heap_held *held)
{
    graph_dominators_free(&held->dominators);
    heap_places_free(&held->places);
    heap_reach_free(&held->reach);
    free(held->groups);
    free(held->root_groups);
    held->groups = NULL;
    held->root_groups = NULL;
}
