/* SPDX-License-Identifier: MIT */
/* Lists the dominator tree from the top down, depth first. Only the largest branches of each node
 * are listed; one more record stands for the others. */
#include <stdlib.h>

#include "analyses/reachability/retained_parts.h"
#include "base/grow.h"
#include "heap/site_table.h"

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

static enum ttd_status add_branch(struct level *level, const struct heap_retainer *retainer)
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
        status = add_branch(level, &retainer);
    }
    retained_cut_level(level);
    return status;
}

/* Lists the next branch of a level, and descends to its own branches unless the tree is too deep.
 */
static enum ttd_status list_branch(struct heap_retained *retained, struct level *levels,
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
            status = list_branch(retained, levels, &depth, depth_max);
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

enum ttd_status retained_tree(struct heap_retained *retained,
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
