/* SPDX-License-Identifier: MIT */
#include "analyses/reachability/retained.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/table.h"
#include "base/task.h"
#include "heap/site_table.h"

/* Blocks that roots hold: the graph of a snapshot, its groups of roots, and its dominator tree. */

/* Finds the group of a root, or adds one. Groups are keyed by variable, by frame of a stack, or by
 * region where a root is in neither. */
static enum ttd_status retained_held_find_group(struct heap_held *held, struct hash_map *index,
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

static enum ttd_status retained_held_make_groups(struct heap_held *held)
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
        status = retained_held_find_group(held, &index, word, &held->root_groups[i]);
        if (status == TTD_OK)
            held->groups[held->root_groups[i]].words++;
    }
    map_free(&index);
    return status;
}

static void retained_held_sum_up(struct heap_held *held)
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
static size_t retained_held_sizes_bytes(const struct heap_held *held)
{
    return ((size_t)held->reach.nodes.count + 1) * sizeof(uint64_t);
}

/* The blocks, and their sizes. */
struct sizing {
    const struct heap_nodes *nodes;
    uint64_t *sizes;
};

static enum ttd_status retained_held_get_sizes(void *context, size_t begin, size_t end)
{
    const struct sizing *sizing = context;
    for (size_t node = begin; node < end; node++)
        sizing->sizes[node] = heap_nodes_size(sizing->nodes, (uint32_t)node);
    return TTD_OK;
}

uint64_t *heap_held_sizes(const struct heap_held *held)
{
    struct sizing sizing = {&held->reach.nodes,
                            table_resize(NULL, 0, retained_held_sizes_bytes(held))};
    if (sizing.sizes)
        (void)halves_do(retained_held_get_sizes, &sizing, &sizing, held->reach.nodes.count);
    return sizing.sizes;
}

void heap_held_free_sizes(const struct heap_held *held, uint64_t *sizes)
{
    if (sizes)
        table_free(sizes, retained_held_sizes_bytes(held));
}

static enum ttd_status retained_held_dominate(struct heap_held *held)
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
static enum ttd_status retained_held_find_tree(const struct heap_trace *trace,
                                               struct heap_held *held, struct ttd_error *error)
{
    enum ttd_status status = TTD_OK;
    held->outcome = held->reach.outcome;
    if (held->reach.snapshot.number)
        status = heap_places_read(trace, &held->reach, &held->places, error);
    if (status == TTD_OK && held->reach.snapshot.number)
        status = retained_held_make_groups(held);
    if (status == TTD_OK && held->reach.snapshot.number)
        status = retained_held_dominate(held);
    if (status == TTD_OK)
        retained_held_sum_up(held);
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
    return status == TTD_OK ? retained_held_find_tree(trace, held, error) : status;
}

enum ttd_status heap_held_build(const struct heap_trace *trace, struct heap_reach *reach,
                                struct heap_held *held, struct ttd_error *error)
{
    struct heap_reach_options options = {.omits_verdicts = true};
    *held = (struct heap_held){.reach = *reach};
    *reach = (struct heap_reach){.class_count = 0};
    enum ttd_status status = heap_reach_read(&held->reach, trace, &options, error);
    if (status == TTD_OK)
        return retained_held_find_tree(trace, held, error);
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

/** Adds a record. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static enum ttd_status retained_add(struct heap_retained *retained,
                                    const struct heap_retainer *retainer)
{
    enum ttd_status status = grow_array((void **)&retained->records, &retained->capacity,
                                        retained->count + 1, sizeof *retained->records);
    if (status == TTD_OK)
        retained->records[retained->count++] = *retainer;
    return status;
}

/** Returns the record of a node of the dominator tree: a block, or a root group. */
static struct heap_retainer retained_of_node(const struct heap_retained *retained, uint32_t node)
{
    const struct heap_held *held = &retained->held;
    const struct graph_dominators *dominators = &held->dominators;
    struct heap_retainer retainer = {.node = node,
                                     .retained_blocks = graph_retained_blocks(dominators, node),
                                     .retained_bytes = dominators->bytes[node]};
    if (node < held->reach.nodes.count) {
        retainer.blocks = 1;
        retainer.bytes = heap_nodes_size(&held->reach.nodes, node);
        retainer.stack = heap_nodes_stack(&held->reach.nodes, node);
    } else {
        retainer.index = node - held->reach.nodes.count + 1;
    }
    return retainer;
}

/** Compares records for qsort(): the one that retains more comes first. */
static int retained_compare(const void *a, const void *b)
{
    const struct heap_retainer *x = a;
    const struct heap_retainer *y = b;
    if (x->retained_bytes != y->retained_bytes)
        return x->retained_bytes > y->retained_bytes ? -1 : 1;
    if (x->retained_blocks != y->retained_blocks)
        return x->retained_blocks > y->retained_blocks ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/** Sorts the records, and drops those behind the first `limit`. */
static void retained_cut(struct heap_retained *retained, size_t limit)
{
    if (retained->count)
        qsort(retained->records, retained->count, sizeof *retained->records, retained_compare);
    if (retained->count > limit)
        retained->count = limit;
}

/* Sizes of root groups: the blocks that a group points at, those that it leads to, and those that
 * it retains: no other group leads to them. */

/* Returns, by root, the index of the record of its group; GRAPH_NONE if the record was dropped.
 * NULL if memory is exhausted. */
static uint32_t *retained_number(const struct heap_retained *retained)
{
    const struct heap_held *held = &retained->held;
    uint64_t roots = held->reach.graph.root_count;
    uint32_t *numbers = malloc((size_t)held->group_count * sizeof *numbers + 1);
    uint32_t *groups = malloc((size_t)roots * sizeof *groups + 1);
    for (uint32_t i = 0; numbers && i < held->group_count; i++)
        numbers[i] = GRAPH_NONE;
    for (size_t i = 0; numbers && i < retained->count; i++)
        numbers[retained->records[i].index - 1] = (uint32_t)i;
    for (uint64_t i = 0; numbers && groups && i < roots; i++)
        groups[i] = numbers[held->root_groups[i]];
    if (!numbers) {
        free(groups);
        groups = NULL;
    }
    free(numbers);
    return groups;
}

/* Sums up the blocks that root groups point at and lead to. A pass over the graph serves
 * GRAPH_TOGETHER_MAX groups, so only the groups that are kept get these sums. */
static enum ttd_status retained_sum_roots(struct heap_retained *retained)
{
    uint32_t *groups = retained_number(retained);
    uint64_t *sizes = heap_held_sizes(&retained->held);
    enum ttd_status status = groups && sizes ? TTD_OK : TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < retained->count && status == TTD_OK; i += GRAPH_TOGETHER_MAX) {
        struct graph_retained direct[GRAPH_TOGETHER_MAX], reached[GRAPH_TOGETHER_MAX];
        size_t remaining = retained->count - i;
        struct graph_leading query = {.groups = groups,
                                      .first = (uint32_t)i,
                                      .count = remaining < GRAPH_TOGETHER_MAX ? (uint32_t)remaining
                                                                              : GRAPH_TOGETHER_MAX,
                                      .sizes = sizes};
        status = graph_reached_together(&retained->held.reach.graph, &query, direct, reached);
        for (size_t j = 0; j < query.count && status == TTD_OK; j++) {
            struct heap_retainer *retainer = &retained->records[i + j];
            retainer->blocks = direct[j].blocks;
            retainer->bytes = direct[j].bytes;
            retainer->reachable_blocks = reached[j].blocks;
            retainer->reachable_bytes = reached[j].bytes;
        }
    }
    free(groups);
    heap_held_free_sizes(&retained->held, sizes);
    return status;
}

/** Finds the records of root groups, in a list. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static enum ttd_status retained_roots(struct heap_retained *retained, size_t limit)
{
    enum ttd_status status = TTD_OK;
    for (uint32_t i = 0; i < retained->held.group_count && status == TTD_OK; i++) {
        struct heap_retainer retainer =
            retained_of_node(retained, heap_held_group_node(&retained->held, i));
        status = retained_add(retained, &retainer);
    }
    retained->total = retained->count;
    retained_cut(retained, limit);
    return status == TTD_OK ? retained_sum_roots(retained) : status;
}

/*
 * Retained sizes of groups of blocks, in two steps. The first ranks all groups by an estimate from
 * the dominator tree: the union of the blocks that each block of a group retains alone. A group
 * retains at least that, and more where several of its blocks hold a block together. The second
 * step finds the exact size of the groups that the first has chosen, in a pass over the graph for
 * every GRAPH_TOGETHER_MAX groups.
 */

/* Sets the key of a node's group: its stack, class or label. */
static enum ttd_status retained_identify(const struct heap_retained *retained,
                                         const struct heap_retained_options *options, uint32_t node,
                                         struct heap_retainer *retainer)
{
    const struct heap_reach *reach = &retained->held.reach;
    *retainer = (struct heap_retainer){.node = GRAPH_NONE};
    if (options->by == HEAP_RETAINED_BY_LABEL) {
        struct heap_block block = heap_nodes_block(&reach->nodes, node);
        return options->labels.find(options->labels.context, &block, &retainer->index);
    }
    if (options->by == HEAP_RETAINED_BY_STACK)
        retainer->stack = heap_nodes_stack(&reach->nodes, node);
    else
        retainer->index = reach->node_classes ? reach->node_classes[node] : 0;
    return TTD_OK;
}

/* Finds the group that has the key of `retainer`, or adds it. */
static enum ttd_status retained_find_group(struct heap_retained *retained, struct hash_map *index,
                                           const struct heap_retainer *retainer, uint32_t *group)
{
    *group = map_get(index, retainer->stack, retainer->index);
    if (*group != MAP_NONE)
        return TTD_OK;
    *group = (uint32_t)retained->count;
    enum ttd_status status = retained_add(retained, retainer);
    if (status == TTD_OK)
        retained->records[*group].group = *group;
    return status == TTD_OK ? map_set(index, retainer->stack, retainer->index, *group) : status;
}

/* Groups the blocks that roots lead to; no other block can be retained. Sets groups[node]. */
static enum ttd_status retained_group_nodes(struct heap_retained *retained,
                                            const struct heap_retained_options *options,
                                            uint32_t *groups)
{
    struct hash_map index;
    enum ttd_status status = TTD_OK;
    map_init(&index);
    for (uint32_t node = 0; node < retained->held.reach.nodes.count && status == TTD_OK; node++) {
        struct heap_retainer retainer;
        groups[node] = GRAPH_NONE;
        if (!graph_retained_blocks(&retained->held.dominators, node))
            continue;
        status = retained_identify(retained, options, node, &retainer);
        if (status == TTD_OK)
            status = retained_find_group(retained, &index, &retainer, &groups[node]);
        if (status != TTD_OK)
            break;
        struct heap_retainer *sum = &retained->records[groups[node]];
        sum->blocks++;
        sum->bytes = heap_add(sum->bytes, heap_nodes_size(&retained->held.reach.nodes, node));
    }
    map_free(&index);
    return status;
}

static void retained_take_sums(struct heap_retainer *records, const struct graph_retained *sums,
                               size_t count)
{
    for (size_t i = 0; i < count; i++) {
        records[i].retained_blocks = sums[i].blocks;
        records[i].retained_bytes = sums[i].bytes;
    }
}

/* Chooses the groups with the largest estimates. */
static enum ttd_status retained_choose_groups(struct heap_retained *retained, size_t limit,
                                              const uint32_t *groups)
{
    struct graph_retained *sums = calloc(retained->count + 1, sizeof *sums);
    if (!sums)
        return TTD_ERROR_NO_MEMORY;
    enum ttd_status status = graph_retained_by_group(&retained->held.dominators, groups,
                                                     (uint32_t)retained->count, sums);
    if (status == TTD_OK)
        retained_take_sums(retained->records, sums, retained->count);
    free(sums);
    retained_cut(retained, limit);
    return status;
}

/* Sets groups[node] to the new index of the group's record after the sort; GRAPH_NONE if the record
 * was dropped. */
static enum ttd_status retained_renumber(const struct heap_retained *retained, uint32_t *groups)
{
    uint32_t *numbers = malloc((size_t)retained->total * sizeof *numbers + 1);
    if (!numbers)
        return TTD_ERROR_NO_MEMORY;
    for (uint64_t i = 0; i < retained->total; i++)
        numbers[i] = GRAPH_NONE;
    for (size_t i = 0; i < retained->count; i++)
        numbers[retained->records[i].group] = (uint32_t)i;
    for (uint32_t node = 0; node < retained->held.reach.nodes.count; node++)
        groups[node] = groups[node] == GRAPH_NONE ? GRAPH_NONE : numbers[groups[node]];
    free(numbers);
    return TTD_OK;
}

/* Finds the exact sizes of the chosen groups. */
static enum ttd_status retained_sum_groups(struct heap_retained *retained, const uint32_t *groups)
{
    const struct heap_held *held = &retained->held;
    uint64_t *sizes = heap_held_sizes(held);
    enum ttd_status status = sizes ? TTD_OK : TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < retained->count && status == TTD_OK; i += GRAPH_TOGETHER_MAX) {
        struct graph_retained sums[GRAPH_TOGETHER_MAX];
        size_t remaining = retained->count - i;
        struct graph_together query = {.dominators = &held->dominators,
                                       .groups = groups,
                                       .first = (uint32_t)i,
                                       .count = remaining < GRAPH_TOGETHER_MAX ? (uint32_t)remaining
                                                                               : GRAPH_TOGETHER_MAX,
                                       .sizes = sizes};
        status = graph_retained_together(&held->reach.graph, &query, sums);
        if (status == TTD_OK)
            retained_take_sums(&retained->records[i], sums, query.count);
    }
    heap_held_free_sizes(held, sizes);
    return status;
}

/** Finds the records of groups of blocks. @return TTD_OK, TTD_ERROR_NO_MEMORY, or the status of
 * options->labels. */
static enum ttd_status retained_groups(struct heap_retained *retained,
                                       const struct heap_retained_options *options, size_t limit)
{
    uint32_t *groups = malloc((size_t)retained->held.reach.nodes.count * sizeof *groups + 1);
    enum ttd_status status =
        groups ? retained_group_nodes(retained, options, groups) : TTD_ERROR_NO_MEMORY;
    retained->total = retained->count;
    if (status == TTD_OK)
        status = retained_choose_groups(retained, limit, groups);
    if (status == TTD_OK)
        status = retained_renumber(retained, groups);
    if (status == TTD_OK)
        status = retained_sum_groups(retained, groups);
    free(groups);
    retained_cut(retained, limit);
    return status;
}

/* Lists the dominator tree from the top down, depth first. Only the largest branches of each node
 * are listed; one more record stands for the others. */

/** One level of the walk: the largest branches of a node. */
struct level {
    struct heap_retainer *records;
    size_t count;
    size_t capacity;
    size_t width;
    /** Index of the next branch to list. */
    size_t next;
    /** Sum of the branches that are not kept. */
    struct heap_retainer others;
};

/* Sorts the branches, and adds those behind the first `width` to `rest`. */
static void retained_cut_level(struct level *level)
{
    if (level->count)
        qsort(level->records, level->count, sizeof *level->records, retained_compare);
    for (size_t i = level->width; i < level->count; i++) {
        const struct heap_retainer *retainer = &level->records[i];
        level->others.others++;
        level->others.retained_blocks =
            heap_add(level->others.retained_blocks, retainer->retained_blocks);
        level->others.retained_bytes =
            heap_add(level->others.retained_bytes, retainer->retained_bytes);
    }
    if (level->count > level->width)
        level->count = level->width;
}

static enum ttd_status retained_add_branch(struct level *level,
                                           const struct heap_retainer *retainer)
{
    enum ttd_status status = grow_array((void **)&level->records, &level->capacity,
                                        level->count + 1, sizeof *level->records);
    if (status != TTD_OK)
        return status;
    level->records[level->count++] = *retainer;
    if (level->count / 2 >= level->width)
        retained_cut_level(level);
    return TTD_OK;
}

static enum ttd_status retained_fill_level(const struct heap_retained *retained,
                                           struct level *level, uint32_t node, uint32_t depth)
{
    uint32_t cursor = 0;
    uint32_t child;
    enum ttd_status status = TTD_OK;
    level->count = level->next = 0;
    level->others = (struct heap_retainer){.node = GRAPH_NONE, .depth = depth};
    while (status == TTD_OK && (child = graph_dominators_child(&retained->held.dominators, node,
                                                               &cursor)) != GRAPH_NONE) {
        struct heap_retainer retainer = retained_of_node(retained, child);
        retainer.depth = depth;
        status = retained_add_branch(level, &retainer);
    }
    retained_cut_level(level);
    return status;
}

/* Lists the next branch of a level, and descends to its own branches unless the tree is too deep.
 */
static enum ttd_status retained_list_branch(struct heap_retained *retained, struct level *levels,
                                            size_t *depth, size_t depth_max)
{
    struct level *level = &levels[*depth];
    uint32_t node = level->records[level->next].node;
    enum ttd_status status = retained_add(retained, &level->records[level->next++]);
    if (status != TTD_OK || *depth + 1 == depth_max)
        return status;
    ++*depth;
    return retained_fill_level(retained, &levels[*depth], node, (uint32_t)*depth);
}

/* Walks the tree depth first. The walk keeps a stack of levels instead of recursing, since the tree
 * of a linked list is as deep as the list is long. */
static enum ttd_status retained_walk(struct heap_retained *retained, struct level *levels,
                                     size_t depth_max)
{
    size_t depth = 0;
    enum ttd_status status =
        retained_fill_level(retained, &levels[0], heap_held_top(&retained->held), 0);
    while (status == TTD_OK) {
        const struct level *level = &levels[depth];
        if (level->next < level->count) {
            status = retained_list_branch(retained, levels, &depth, depth_max);
            continue;
        }
        if (level->others.others)
            status = retained_add(retained, &level->others);
        if (depth-- == 0)
            break;
    }
    return status;
}

static size_t retained_level_width(size_t limit, size_t depth)
{
    if (limit == SIZE_MAX)
        return limit;
    return depth < 63 && limit >> depth ? limit >> depth : 1;
}

/** Finds the records of a tree. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static enum ttd_status retained_tree(struct heap_retained *retained,
                                     const struct heap_retained_options *options)
{
    struct level *levels = calloc(options->depth, sizeof *levels);
    if (!levels)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < options->depth; i++)
        levels[i].width = retained_level_width(options->limit, i);
    enum ttd_status status = retained_walk(retained, levels, options->depth);
    for (size_t i = 0; i < options->depth; i++)
        free(levels[i].records);
    free(levels);
    retained->total = retained->count;
    return status;
}

/* Ranks all blocks. The list is cut whenever it has twice as many records as are asked for: so
 * memory depends on the limit and not on the number of blocks, and one sort serves many additions.
 * Once the list was cut, a block that ranks behind its last record need not be added. */
static enum ttd_status retained_rank_blocks(struct heap_retained *retained, size_t limit)
{
    enum ttd_status status = TTD_OK;
    bool was_cut = false;
    for (uint32_t node = 0; node < retained->held.reach.nodes.count && status == TTD_OK; node++) {
        struct heap_retainer retainer = retained_of_node(retained, node);
        if (!retainer.retained_blocks)
            continue;
        retained->total++;
        if (was_cut && retained_compare(&retainer, &retained->records[limit - 1]) > 0)
            continue;
        status = retained_add(retained, &retainer);
        if (retained->count / 2 >= limit) {
            retained_cut(retained, limit);
            was_cut = true;
        }
    }
    return status;
}

static enum ttd_status retained_find_records(struct heap_retained *retained,
                                             const struct heap_retained_options *options)
{
    size_t group_limit =
        options->limit < HEAP_RETAINED_GROUPS_MAX ? options->limit : HEAP_RETAINED_GROUPS_MAX;
    if (options->depth)
        return retained_tree(retained, options);
    if (options->by == HEAP_RETAINED_BY_ROOT)
        return retained_roots(retained, group_limit);
    if (options->by != HEAP_RETAINED_BY_BLOCK)
        return retained_groups(retained, options, group_limit);
    enum ttd_status status = retained_rank_blocks(retained, options->limit);
    retained_cut(retained, options->limit);
    return status;
}

enum ttd_status heap_retained_find(const struct heap_trace *trace,
                                   const struct heap_retained_options *options,
                                   struct heap_retained *retained, struct ttd_error *error)
{
    *retained = (struct heap_retained){.count = 0};
    enum ttd_status status = heap_held_find(trace, options->at, &retained->held, error);
    if (status != TTD_OK)
        return status;
    status = heap_retained_rank(retained, options);
    if (status != TTD_OK)
        heap_retained_free(retained);
    return status;
}

enum ttd_status heap_retained_rank(struct heap_retained *retained,
                                   const struct heap_retained_options *options)
{
    retained->outcome = retained->held.outcome;
    retained->count = 0;
    retained->total = 0;
    return retained->held.reach.snapshot.number ? retained_find_records(retained, options) : TTD_OK;
}

void heap_retained_free(struct heap_retained *retained)
{
    heap_held_free(&retained->held);
    free(retained->records);
    retained->records = NULL;
}
