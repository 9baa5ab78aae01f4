/* SPDX-License-Identifier: MIT */
#include "analyses/reachability/referrers.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "common/search.h"
#include "graph/graph.h"
#include "travel/replay_to.h"

struct earlier_search {
    struct heap_earlier *words;
    size_t count;
};

static int referrers_compare_earlier(const void *left, const void *right)
{
    const struct heap_earlier *a = left;
    const struct heap_earlier *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static enum ttd_status referrers_see_end(void *context, const struct heap_effect *effect)
{
    const struct earlier_search *search = context;
    const struct heap_block *block = effect->block;
    size_t low = 0, high = search->count;
    if (!block || effect->kind == HEAP_ACQUIRED)
        return TTD_OK;
    SEARCH_SORTED(low, high, middle, search->words[middle].address < block->address);
    for (; low < search->count &&
           heap_block_covers(block, search->words[low].address, search->words[low].address);
         low++)
        search->words[low].owner =
            (struct heap_owner){.block = *block,
                                .released = heap_call_of_effect(effect),
                                .overlapped = effect->kind == HEAP_OVERLAPPED};
    return TTD_OK;
}

enum ttd_status heap_earlier_find(const struct heap_trace *trace, struct ttd_position until,
                                  struct heap_earlier *words, size_t count, struct ttd_error *error)
{
    struct earlier_search search = {words, count};
    struct heap_observer observer = {.context = &search,
                                     .effect = referrers_see_end,
                                     .unwanted = HEAP_EFFECT_BIT(HEAP_ACQUIRED) |
                                                 HEAP_EFFECT_BIT(HEAP_DESTROYED) |
                                                 HEAP_EFFECT_BIT(HEAP_UNKNOWN_RELEASE)};
    struct heap_route route = {.to = until, .observer = &observer};
    struct heap_arrival arrival;
    if (!count)
        return TTD_OK;
    qsort(words, count, sizeof *words, referrers_compare_earlier);
    for (size_t i = 0; i < count; i++)
        words[i].owner = (struct heap_owner){.released = heap_call_none()};
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    /* Effects of the blocks of destroyed heaps come now. */
    if (status == TTD_OK)
        heap_live_discard_stale(&arrival.cursor.replay.live);
    heap_arrival_free(&arrival);
    return status;
}

/** Minimum number of blocks of a chain. Shorter ones are listed block by block. */
#define CHAIN_MIN 4

/** One level of the walk: the words that point at a block. The `width` words nearest to a root are
 * kept, the nearest first. */
struct level {
    struct heap_referrer *words;
    size_t count;
    size_t width;
    /** Index of the next word to list. */
    size_t next;
    /** Number of all words that point at the block. */
    uint64_t total;
};

struct walk {
    struct heap_referrers *referrers;
    const struct heap_referrers_options *options;
    struct graph_reverse reverse;
    struct graph_paths paths;
    struct level *levels;
    struct heap_referrer *words;
    /** By node: the words that point at its block have been listed. */
    bool *is_listed;
};

/* Whether `a` is to be listed before `b`: roots come first, then words nearer to a root, then
 * pointers to the start of the block. */
static bool referrers_is_nearer(const struct heap_referrer *a, const struct heap_referrer *b)
{
    if (a->distance != b->distance)
        return a->distance < b->distance;
    if ((a->flags & GRAPH_INTERIOR) != (b->flags & GRAPH_INTERIOR))
        return !(a->flags & GRAPH_INTERIOR);
    return false;
}

/* Adds a word to a level, if it is among the nearest ones. */
static void referrers_add_word(struct level *level, const struct heap_referrer *word)
{
    size_t index = level->count;
    level->total++;
    while (index > 0 && referrers_is_nearer(word, &level->words[index - 1]))
        index--;
    if (index == level->width)
        return;
    size_t moved = level->count - index;
    if (level->count == level->width)
        moved--;
    else
        level->count++;
    memmove(&level->words[index + 1], &level->words[index], moved * sizeof *word);
    level->words[index] = *word;
}

/* Returns the number of pointers from the nearest root to a block: those between blocks, and the
 * root's own. */
static uint32_t referrers_distance_of(const struct walk *walk, uint32_t node)
{
    uint32_t distance = walk->paths.distances[node];
    return distance == GRAPH_NONE ? GRAPH_NONE : distance + 1;
}

/* Adds all words of the block `source` that point at the block `node`. */
static void referrers_add_source(const struct walk *walk, struct level *level, uint32_t source,
                                 uint32_t node)
{
    const struct heap_reach *reach = &walk->referrers->reach;
    const struct graph *graph = &reach->graph;
    for (uint64_t edge = graph->first[source]; edge < graph->first[source + 1]; edge++)
        if (graph->targets[edge] == node)
            referrers_add_word(level,
                               &(struct heap_referrer){
                                   .kind = HEAP_REFERRER_BLOCK,
                                   .node = source,
                                   .offset = edge_offset_in_source(&reach->offsets, edge),
                                   .target_offset = edge_offset_in_target(&reach->offsets, edge),
                                   .flags = graph->flags[edge],
                                   .distance = referrers_distance_of(walk, source)});
}

/* Finds the words that point at a block. */
static void referrers_fill_level(const struct walk *walk, struct level *level, uint32_t node)
{
    const struct heap_reach *reach = &walk->referrers->reach;
    const struct graph_reverse *reverse = &walk->reverse;
    level->count = level->next = 0;
    level->total = 0;
    for (uint64_t i = reverse->first_root[node]; i < reverse->first_root[node + 1]; i++) {
        uint32_t root = reverse->roots[i];
        const struct heap_root_word *word = &reach->roots[reach->graph.root_ids[root]];
        referrers_add_word(level, &(struct heap_referrer){.kind = HEAP_REFERRER_ROOT,
                                                          .node = GRAPH_NONE,
                                                          .region = word->region,
                                                          .offset = word->offset,
                                                          .target_offset = word->target_offset,
                                                          .flags = reach->graph.root_flags[root]});
    }
    for (uint64_t i = reverse->first[node]; i < reverse->first[node + 1]; i++)
        /* `sources` has a block once for each of its edges, one after the other;
         * referrers_add_source() adds all of them. */
        if (i == reverse->first[node] || reverse->sources[i] != reverse->sources[i - 1])
            referrers_add_source(walk, level, reverse->sources[i], node);
}

static enum ttd_status referrers_add_line(struct heap_referrers *referrers,
                                          const struct heap_referrer *referrer)
{
    enum ttd_status status = grow_array((void **)&referrers->lines, &referrers->capacity,
                                        referrers->count + 1, sizeof *referrers->lines);
    if (status == TTD_OK)
        referrers->lines[referrers->count++] = *referrer;
    return status;
}

/* Whether two words are at the same offset of blocks with the same size and call site, and point to
 * the same offset: then both may be the link of a list. */
static bool referrers_is_like(const struct walk *walk, const struct heap_referrer *a,
                              const struct heap_referrer *b)
{
    const struct heap_nodes *nodes = &walk->referrers->reach.nodes;
    return b->kind == HEAP_REFERRER_BLOCK && a->offset == b->offset &&
           a->target_offset == b->target_offset &&
           heap_nodes_size(nodes, a->node) == heap_nodes_size(nodes, b->node) &&
           heap_nodes_stack(nodes, a->node) == heap_nodes_stack(nodes, b->node);
}

/* Follows a linked list towards a root, from the block of `referrer` on. A list of CHAIN_MIN blocks
 * or more becomes one line; then `depth` is that line's, and `node` the last block of the list. */
static enum ttd_status referrers_follow_chain(struct walk *walk,
                                              const struct heap_referrer *referrer, size_t *depth,
                                              uint32_t *node)
{
    struct heap_referrer word;
    struct level nearest = {.words = &word, .width = 1};
    uint64_t count = 0;
    uint32_t last = referrer->node;
    unsigned flags = 0;
    for (;;) {
        referrers_fill_level(walk, &nearest, last);
        /* Each step must come nearer to a root: that ends in a cycle as well. */
        if (!nearest.count || !referrers_is_like(walk, referrer, &word) ||
            walk->is_listed[word.node] || word.distance >= referrers_distance_of(walk, last))
            break;
        walk->is_listed[last] = true;
        last = word.node;
        flags |= word.flags & GRAPH_STALE;
        count++;
    }
    if (count < CHAIN_MIN) {
        /* Too short: go back the same way, so that its blocks are listed one by one. */
        for (uint32_t block = referrer->node; count > 0; count--) {
            walk->is_listed[block] = false;
            referrers_fill_level(walk, &nearest, block);
            block = word.node;
        }
        return TTD_OK;
    }
    *node = last;
    ++*depth;
    return referrers_add_line(
        walk->referrers, &(struct heap_referrer){.kind = HEAP_REFERRER_CHAIN,
                                                 .depth = (uint32_t)*depth,
                                                 .node = last,
                                                 .offset = referrer->offset,
                                                 .target_offset = referrer->target_offset,
                                                 .flags = flags,
                                                 .distance = referrers_distance_of(walk, last),
                                                 .is_too_deep = *depth + 1 == walk->options->depth,
                                                 .count = count});
}

/* Lists the next word of a level. Descends to the words that point at its block, unless they have
 * been listed or the tree is too deep. */
static enum ttd_status referrers_list_word(struct walk *walk, size_t *depth)
{
    struct level *level = &walk->levels[*depth];
    struct heap_referrer referrer = level->words[level->next++];
    referrer.depth = (uint32_t)*depth;
    if (referrer.kind == HEAP_REFERRER_BLOCK) {
        referrer.is_repeated = walk->is_listed[referrer.node];
        referrer.is_too_deep = !referrer.is_repeated && *depth + 1 == walk->options->depth;
    }
    enum ttd_status status = referrers_add_line(walk->referrers, &referrer);
    if (status != TTD_OK || referrer.kind != HEAP_REFERRER_BLOCK || referrer.is_repeated ||
        referrer.is_too_deep)
        return status;
    uint32_t node = referrer.node;
    status = referrers_follow_chain(walk, &referrer, depth, &node);
    walk->is_listed[node] = true;
    if (*depth + 1 == walk->options->depth)
        return status;
    ++*depth;
    referrers_fill_level(walk, &walk->levels[*depth], node);
    return status;
}

/* Walks the tree depth first, from the words that point at the target on. */
static enum ttd_status referrers_walk(struct walk *walk)
{
    size_t depth = 0;
    enum ttd_status status = TTD_OK;
    referrers_fill_level(walk, &walk->levels[0], walk->referrers->target);
    walk->is_listed[walk->referrers->target] = true;
    walk->referrers->total = walk->levels[0].total;
    while (status == TTD_OK) {
        struct level *level = &walk->levels[depth];
        if (level->next < level->count) {
            status = referrers_list_word(walk, &depth);
            continue;
        }
        if (level->total > level->count)
            status = referrers_add_line(
                walk->referrers, &(struct heap_referrer){.kind = HEAP_REFERRER_MORE,
                                                         .depth = (uint32_t)depth,
                                                         .node = GRAPH_NONE,
                                                         .count = level->total - level->count});
        level->total = level->count = level->next = 0;
        if (depth-- == 0)
            break;
    }
    return status;
}

/* Allocates the levels of the walk; their words are parts of one array. */
static enum ttd_status referrers_make_levels(struct walk *walk)
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

static enum ttd_status referrers_find_words(struct heap_referrers *referrers,
                                            const struct heap_referrers_options *options)
{
    struct walk walk = {.referrers = referrers, .options = options};
    enum ttd_status status = graph_reverse_init(&walk.reverse, &referrers->reach.graph);
    if (status == TTD_OK)
        status = graph_paths_find(&referrers->reach.graph, 0, &walk.paths);
    if (status == TTD_OK)
        status = referrers_make_levels(&walk);
    if (status == TTD_OK) {
        referrers->distance = referrers_distance_of(&walk, referrers->target);
        status = referrers_walk(&walk);
    }
    graph_reverse_free(&walk.reverse);
    graph_paths_free(&walk.paths);
    free(walk.levels);
    free(walk.words);
    free(walk.is_listed);
    return status;
}

/* Lists the words of released memory that have an address in the target. */
static enum ttd_status referrers_list_relics(struct heap_referrers *referrers, size_t width)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < referrers->reach.relic_count && status == TTD_OK; i++) {
        const struct heap_relic *relic = &referrers->reach.relics[i];
        if (relic->target != referrers->target || ++referrers->relic_count > width)
            continue;
        status = referrers_add_line(
            referrers, &(struct heap_referrer){.kind = HEAP_REFERRER_RELIC,
                                               .node = GRAPH_NONE,
                                               .region = relic->word.region,
                                               .offset = relic->word.offset,
                                               .target_offset = relic->word.target_offset,
                                               .distance = GRAPH_NONE});
    }
    return status;
}

uint64_t heap_referrer_address(const struct heap_referrers *referrers,
                               const struct heap_referrer *referrer)
{
    const struct heap_reach *reach = &referrers->reach;
    const struct ttd_region *region = heap_reach_region(reach, referrer->region);
    switch (referrer->kind) {
    case HEAP_REFERRER_ROOT:
    case HEAP_REFERRER_RELIC:
        return region && heap_region_has_addresses(region) ? region->begin + referrer->offset
                                                           : TTD_UNKNOWN;
    case HEAP_REFERRER_BLOCK:
        return referrer->offset < REACH_CONTINUES
                   ? heap_nodes_address(&reach->nodes, referrer->node) + referrer->offset
                   : TTD_UNKNOWN;
    case HEAP_REFERRER_CHAIN:
    case HEAP_REFERRER_MORE:
        break;
    }
    return TTD_UNKNOWN;
}

/* Whether another block may have had the word of a line before. */
static bool referrers_may_have_earlier(const struct heap_referrers *referrers,
                                       const struct heap_referrer *referrer)
{
    const struct ttd_region *region = heap_reach_region(&referrers->reach, referrer->region);
    if (heap_referrer_address(referrers, referrer) == TTD_UNKNOWN)
        return false;
    return referrer->kind == HEAP_REFERRER_BLOCK ? referrer->flags & GRAPH_STALE
                                                 : region->kind == TTD_REGION_HEAP;
}

static int referrers_compare_address(const void *key, const void *element)
{
    const uint64_t *address = key;
    const struct heap_earlier *earlier = element;
    return (*address > earlier->address) - (*address < earlier->address);
}

/* Finds the blocks that had words before. */
static enum ttd_status referrers_find_earlier(struct heap_referrers *referrers,
                                              const struct heap_trace *trace,
                                              struct ttd_error *error)
{
    size_t *count = &referrers->earlier_count;
    referrers->earlier = calloc(referrers->count + 1, sizeof *referrers->earlier);
    if (!referrers->earlier)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < referrers->count; i++)
        if (referrers_may_have_earlier(referrers, &referrers->lines[i]))
            referrers->earlier[(*count)++].address =
                heap_referrer_address(referrers, &referrers->lines[i]);
    enum ttd_status status = heap_earlier_find(trace, referrers->reach.snapshot.position,
                                               referrers->earlier, *count, error);
    for (size_t i = 0; i < referrers->count && status == TTD_OK; i++) {
        struct heap_referrer *line = &referrers->lines[i];
        uint64_t address = heap_referrer_address(referrers, line);
        const struct heap_earlier *earlier =
            referrers_may_have_earlier(referrers, line)
                ? bsearch(&address, referrers->earlier, *count, sizeof *earlier,
                          referrers_compare_address)
                : NULL;
        if (earlier && heap_call_is_known(&earlier->owner.released))
            line->earlier = &earlier->owner;
    }
    return status;
}

enum ttd_status heap_referrers_find(const struct heap_trace *trace,
                                    const struct heap_referrers_options *options,
                                    struct heap_referrers *referrers, struct ttd_error *error)
{
    struct heap_reach_options graph = {
        .at = options->at, .keeps_offsets = true, .lists_relics = true};
    *referrers = (struct heap_referrers){.target = GRAPH_NONE, .distance = GRAPH_NONE};
    enum ttd_status status = heap_reach_find(trace, &graph, &referrers->reach, error);
    if (status != TTD_OK)
        return status;
    referrers->outcome = referrers->reach.outcome;
    if (!referrers->reach.snapshot.number)
        return TTD_OK;
    referrers->target = heap_nodes_at(&referrers->reach.nodes, options->address);
    if (referrers->target != GRAPH_NONE)
        status = referrers_find_words(referrers, options);
    if (status == TTD_OK)
        status = referrers_list_relics(referrers, options->width);
    if (status == TTD_OK)
        status = referrers_find_earlier(referrers, trace, error);
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
    free(referrers->earlier);
    referrers->lines = NULL;
    referrers->earlier = NULL;
}
