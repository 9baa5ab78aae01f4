/* SPDX-License-Identifier: MIT */
/* The dominator tree, from the roots down, the largest branches first. */
#include <stdlib.h>

#include "analyses/reachability/retained_parts.h"
#include "base/grow.h"
#include "heap/site_table.h"

/** The branches of a node, of which the largest are kept. */
struct level {
    struct heap_retainer *items;
    size_t count;
    size_t capacity;
    size_t width;
    /** The next one to go to. */
    size_t next;
    /** The branches that are not kept, and what they retain. */
    struct heap_retainer rest;
};

/* Keeps the largest branches. */
static void cut(struct level *level)
{
    if (level->count)
        qsort(level->items, level->count, sizeof *level->items, retained_compare);
    for (size_t i = level->width; i < level->count; i++) {
        const struct heap_retainer *item = &level->items[i];
        level->rest.others++;
        level->rest.retained_blocks = heap_add(level->rest.retained_blocks, item->retained_blocks);
        level->rest.retained_bytes = heap_add(level->rest.retained_bytes, item->retained_bytes);
    }
    if (level->count > level->width)
        level->count = level->width;
}

static enum ttd_status add_branch(struct level *level, const struct heap_retainer *item)
{
    enum ttd_status status = grow_array((void **)&level->items, &level->capacity, level->count + 1,
                                        sizeof *level->items);
    if (status != TTD_OK)
        return status;
    level->items[level->count++] = *item;
    if (level->count / 2 >= level->width)
        cut(level);
    return TTD_OK;
}

static enum ttd_status fill_level(const struct heap_retained *retained, struct level *level,
                                  uint32_t node, uint32_t depth)
{
    uint32_t cursor = 0;
    uint32_t child;
    enum ttd_status status = TTD_OK;
    level->count = level->next = 0;
    level->rest = (struct heap_retainer){.node = GRAPH_NONE, .depth = depth};
    while (status == TTD_OK && (child = graph_dominators_child(&retained->held.dominators, node,
                                                               &cursor)) != GRAPH_NONE) {
        struct heap_retainer item = retained_of_node(retained, child);
        item.depth = depth;
        status = add_branch(level, &item);
    }
    cut(level);
    return status;
}

/* Tells the next branch of a level, and goes on to those of it if the tree is not too deep. */
static enum ttd_status tell(struct heap_retained *retained, struct level *levels, size_t *depth,
                            size_t depth_max)
{
    struct level *level = &levels[*depth];
    uint32_t node = level->items[level->next].node;
    enum ttd_status status = retained_add(retained, &level->items[level->next++]);
    if (status != TTD_OK || *depth + 1 == depth_max)
        return status;
    ++*depth;
    return fill_level(retained, &levels[*depth], node, (uint32_t)*depth);
}

/* Goes through the tree, depth first. */
static enum ttd_status go(struct heap_retained *retained, struct level *levels, size_t depth_max)
{
    size_t depth = 0;
    enum ttd_status status = fill_level(retained, &levels[0], heap_held_top(&retained->held), 0);
    while (status == TTD_OK) {
        const struct level *level = &levels[depth];
        if (level->next < level->count) {
            status = tell(retained, levels, &depth, depth_max);
            continue;
        }
        if (level->rest.others)
            status = retained_add(retained, &level->rest);
        if (depth-- == 0)
            break;
    }
    return status;
}

static size_t width_of(size_t limit, size_t depth)
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
        levels[i].width = width_of(options->limit, i);
    enum ttd_status status = go(retained, levels, options->depth);
    for (size_t i = 0; i < options->depth; i++)
        free(levels[i].items);
    free(levels);
    retained->total = retained->count;
    return status;
}
