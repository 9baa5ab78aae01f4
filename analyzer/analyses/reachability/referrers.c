/* SPDX-License-Identifier: MIT */
#include "analyses/reachability/referrers.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "graph/paths.h"

/** Shorter chains are told block by block. */
#define CHAIN_MIN 4

/** The words that point at a block, of which the first `count` are kept, nearest to a root first.
 */
struct level {
    struct heap_referrer *words;
    size_t count;
    size_t width;
    /** The next one to go to. */
    size_t next;
    /** All words that point there. */
    uint64_t total;
};

struct walk {
    struct heap_referrers *referrers;
    const struct heap_referrers_options *options;
    struct graph_reverse reverse;
    struct graph_paths paths;
    struct level *levels;
    struct heap_referrer *words;
    /** By node: those that point at it were told. */
    bool *is_listed;
};

/* Whether one word is to be told before another: roots first, then what is nearer to one. */
static bool is_nearer(const struct heap_referrer *a, const struct heap_referrer *b)
{
    if (a->distance != b->distance)
        return a->distance < b->distance;
    if ((a->flags & GRAPH_INTERIOR) != (b->flags & GRAPH_INTERIOR))
        return !(a->flags & GRAPH_INTERIOR);
    return false;
}

/* Adds a word to a level, if it is among the first ones. */
static void add_word(struct level *level, const struct heap_referrer *word)
{
    size_t at = level->count;
    level->total++;
    while (at > 0 && is_nearer(word, &level->words[at - 1]))
        at--;
    if (at == level->width)
        return;
    size_t moved = level->count - at;
    if (level->count == level->width)
        moved--;
    else
        level->count++;
    memmove(&level->words[at + 1], &level->words[at], moved * sizeof *word);
    level->words[at] = *word;
}

/* Steps from a root to a block: pointers between them, and the root's own. */
static uint32_t distance_of(const struct walk *walk, uint32_t node)
{
    uint32_t distance = walk->paths.distances[node];
    return distance == GRAPH_NONE ? GRAPH_NONE : distance + 1;
}

/* Adds the words of a block that point at another. */
static void add_source(const struct walk *walk, struct level *level, uint32_t source, uint32_t node)
{
    const struct heap_reach *reach = &walk->referrers->reach;
    const struct graph *graph = &reach->graph;
    for (uint64_t edge = graph->first[source]; edge < graph->first[source + 1]; edge++)
        if (graph->targets[edge] == node)
            add_word(level, &(struct heap_referrer){
                                .kind = HEAP_REFERRER_BLOCK,
                                .node = source,
                                .offset = edge_offset_in_source(&reach->offsets, edge),
                                .target_offset = edge_offset_in_target(&reach->offsets, edge),
                                .flags = graph->flags[edge],
                                .distance = distance_of(walk, source)});
}

/* Finds the words that point at a block. */
static void fill_level(const struct walk *walk, struct level *level, uint32_t node)
{
    const struct heap_reach *reach = &walk->referrers->reach;
    const struct graph_reverse *reverse = &walk->reverse;
    level->count = level->next = 0;
    level->total = 0;
    for (uint64_t i = reverse->first_root[node]; i < reverse->first_root[node + 1]; i++) {
        uint32_t root = reverse->roots[i];
        const struct heap_root_word *word = &reach->roots[reach->graph.root_ids[root]];
        add_word(level, &(struct heap_referrer){.kind = HEAP_REFERRER_ROOT,
                                                .node = GRAPH_NONE,
                                                .region = word->region,
                                                .offset = word->offset,
                                                .target_offset = word->target_offset,
                                                .flags = reach->graph.root_flags[root]});
    }
    for (uint64_t i = reverse->first[node]; i < reverse->first[node + 1]; i++)
        /* A source stands here once for each of its edges; add_source() takes all of them at
         * once. */
        if (i == reverse->first[node] || reverse->sources[i] != reverse->sources[i - 1])
            add_source(walk, level, reverse->sources[i], node);
}

static enum ttd_status add_item(struct heap_referrers *referrers, const struct heap_referrer *item)
{
    enum ttd_status status = grow_array((void **)&referrers->lines, &referrers->capacity,
                                        referrers->count + 1, sizeof *referrers->lines);
    if (status == TTD_OK)
        referrers->lines[referrers->count++] = *item;
    return status;
}

/* Whether two words lie at the same place of blocks of one kind, such as those of a list. */
static bool is_like(const struct walk *walk, const struct heap_referrer *a,
                    const struct heap_referrer *b)
{
    const struct heap_nodes *nodes = &walk->referrers->reach.nodes;
    return b->kind == HEAP_REFERRER_BLOCK && a->offset == b->offset &&
           a->target_offset == b->target_offset &&
           heap_nodes_size(nodes, a->node) == heap_nodes_size(nodes, b->node) &&
           heap_nodes_stack(nodes, a->node) == heap_nodes_stack(nodes, b->node);
}

/* Follows a list towards a root, from a word on: blocks of one kind each of which points at the
 * one before in the same way. A long one is told as a whole. Sets `node` to its last block. */
static enum ttd_status follow_chain(struct walk *walk, const struct heap_referrer *item,
                                    size_t *depth, uint32_t *node)
{
    struct heap_referrer word;
    struct level one = {.words = &word, .width = 1};
    uint64_t count = 0;
    uint32_t last = item->node;
    for (;;) {
        fill_level(walk, &one, last);
        /* Only while each step comes nearer to a root, which a cycle does not. */
        if (!one.count || !is_like(walk, item, &word) || walk->is_listed[word.node] ||
            word.distance >= distance_of(walk, last))
            break;
        walk->is_listed[last] = true;
        last = word.node;
        count++;
    }
    if (count < CHAIN_MIN) {
        /* Too short: its blocks are told one by one. */
        for (uint32_t at = item->node; count > 0; count--) {
            walk->is_listed[at] = false;
            fill_level(walk, &one, at);
            at = word.node;
        }
        return TTD_OK;
    }
    *node = last;
    ++*depth;
    return add_item(walk->referrers,
                    &(struct heap_referrer){.kind = HEAP_REFERRER_CHAIN,
                                            .depth = (uint32_t)*depth,
                                            .node = last,
                                            .offset = item->offset,
                                            .target_offset = item->target_offset,
                                            .distance = distance_of(walk, last),
                                            .is_too_deep = *depth + 1 == walk->options->depth,
                                            .count = count});
}

/* Tells the next word of a level. If it lies in a block of which nobody was told yet who points at
 * it, goes there. */
static enum ttd_status tell(struct walk *walk, size_t *depth)
{
    struct level *level = &walk->levels[*depth];
    struct heap_referrer item = level->words[level->next++];
    item.depth = (uint32_t)*depth;
    if (item.kind == HEAP_REFERRER_BLOCK) {
        item.is_repeated = walk->is_listed[item.node];
        item.is_too_deep = !item.is_repeated && *depth + 1 == walk->options->depth;
    }
    enum ttd_status status = add_item(walk->referrers, &item);
    if (status != TTD_OK || item.kind != HEAP_REFERRER_BLOCK || item.is_repeated ||
        item.is_too_deep)
        return status;
    uint32_t node = item.node;
    status = follow_chain(walk, &item, depth, &node);
    walk->is_listed[node] = true;
    if (*depth + 1 == walk->options->depth)
        return status;
    ++*depth;
    fill_level(walk, &walk->levels[*depth], node);
    return status;
}

/* Goes through the tree from the target on, depth first. */
static enum ttd_status go(struct walk *walk)
{
    size_t depth = 0;
    enum ttd_status status = TTD_OK;
    fill_level(walk, &walk->levels[0], walk->referrers->target);
    walk->is_listed[walk->referrers->target] = true;
    walk->referrers->total = walk->levels[0].total;
    while (status == TTD_OK) {
        struct level *level = &walk->levels[depth];
        if (level->next < level->count) {
            status = tell(walk, &depth);
            continue;
        }
        if (level->total > level->count)
            status = add_item(walk->referrers,
                              &(struct heap_referrer){.kind = HEAP_REFERRER_MORE,
                                                      .depth = (uint32_t)depth,
                                                      .node = GRAPH_NONE,
                                                      .count = level->total - level->count});
        level->total = level->count = level->next = 0;
        if (depth-- == 0)
            break;
    }
    return status;
}

/* Makes room for the levels. */
static enum ttd_status make_levels(struct walk *walk)
{
    size_t depth = walk->options->depth;
    size_t width = walk->options->width;
    size_t words = 0;
    for (size_t i = 0; i < depth; i++)
        words += i < 63 && width >> i ? width >> i : 1;
    walk->levels = calloc(depth, sizeof *walk->levels);
    walk->words = calloc(words, sizeof *walk->words);
    walk->is_listed = calloc(walk->referrers->reach.nodes.count, sizeof *walk->is_listed);
    if (!walk->levels || !walk->words || !walk->is_listed)
        return TTD_ERROR_NO_MEMORY;
    words = 0;
    for (size_t i = 0; i < depth; i++) {
        walk->levels[i].width = i < 63 && width >> i ? width >> i : 1;
        walk->levels[i].words = walk->words + words;
        words += walk->levels[i].width;
    }
    return TTD_OK;
}

static enum ttd_status find_words(struct heap_referrers *referrers,
                                  const struct heap_referrers_options *options)
{
    struct walk walk = {.referrers = referrers, .options = options};
    enum ttd_status status = graph_reverse_init(&walk.reverse, &referrers->reach.graph);
    if (status == TTD_OK)
        status = graph_paths_find(&referrers->reach.graph, 0, &walk.paths);
    if (status == TTD_OK)
        status = make_levels(&walk);
    if (status == TTD_OK) {
        referrers->distance = distance_of(&walk, referrers->target);
        status = go(&walk);
    }
    graph_reverse_free(&walk.reverse);
    graph_paths_free(&walk.paths);
    free(walk.levels);
    free(walk.words);
    free(walk.is_listed);
    return status;
}

enum ttd_status heap_referrers_find(const struct heap_trace *trace,
                                    const struct heap_referrers_options *options,
                                    struct heap_referrers *referrers, struct ttd_error *error)
{
    struct heap_reach_options graph = {.at = options->at, .keeps_offsets = true};
    *referrers = (struct heap_referrers){.target = GRAPH_NONE, .distance = GRAPH_NONE};
    enum ttd_status status = heap_reach_find(trace, &graph, &referrers->reach, error);
    if (status != TTD_OK)
        return status;
    referrers->outcome = referrers->reach.outcome;
    if (!referrers->reach.snapshot.number)
        return TTD_OK;
    referrers->target = heap_nodes_at(&referrers->reach.nodes, options->address);
    if (referrers->target != GRAPH_NONE)
        status = find_words(referrers, options);
    if (status == TTD_OK)
        status = heap_places_read(trace, &referrers->reach, &referrers->places, error);
    if (status != TTD_OK)
        heap_referrers_free(referrers);
    return status;
}

void heap_referrers_free(struct heap_referrers *referrers)
{
    heap_places_free(&referrers->places);
    heap_reach_free(&referrers->reach);
    free(referrers->lines);
    referrers->lines = NULL;
}
