/* SPDX-License-Identifier: MIT */
#include "reach/stale.h"

#include <stdlib.h>

#include "base/grow.h"
#include "graph/classes.h"
#include "reach/between.h"

/* A word that may be stale: of a block, or of heap memory outside of live blocks. */
struct word {
    uint64_t address;
    /** Its edge; its root if it is in no block. */
    uint64_t edge;
    /** HEAP_NO_NODE if it is in no block. */
    uint32_t source;
    /** It was copied by realloc() into its block. */
    bool is_copied;
};

struct search {
    struct heap_reach *reach;
    /** By address. */
    struct word *words;
    size_t count;
    size_t capacity;
    /**
     * A tree above the words, which are its leaves from `count` on; node n is the parent of 2n and
     * 2n + 1. Holds when all words below a node were last released at once: the last release of a
     * word is the latest one from its leaf up to the root.
     */
    struct ttd_position *released;
};

static bool may_be_stale(const struct heap_reach *reach, uint32_t source, uint32_t target)
{
    const struct heap_block *from = &reach->nodes.blocks[source];
    const struct heap_block *to = &reach->nodes.blocks[target];
    return from->api != TTD_API_CALLOC && ttd_position_compare(to->allocated, from->allocated) < 0;
}

/* Flags whatever may be stale by the times of allocation. */
static void flag_all(struct heap_reach *reach)
{
    struct graph *graph = &reach->graph;
    for (uint32_t node = 0; node < graph->node_count; node++) {
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
            if (may_be_stale(reach, node, graph->targets[i]))
                graph->flags[i] |= GRAPH_STALE;
        }
    }
}

static bool is_lost(const struct graph_classes *classes, uint32_t node)
{
    enum graph_class class = graph_class_of(classes, node);
    return class == GRAPH_INDIRECTLY_LOST || class == GRAPH_DEFINITELY_LOST;
}

static enum ttd_status add_word(struct search *search, const struct word *word)
{
    enum ttd_status status = grow_array((void **)&search->words, &search->capacity,
                                        search->count + 1, sizeof *search->words);
    if (status == TTD_OK)
        search->words[search->count++] = *word;
    return status;
}

static enum ttd_status add_edge(struct search *search, uint32_t source, uint64_t edge)
{
    const struct heap_reach *reach = search->reach;
    struct word word = {.address = reach->nodes.ranges[source].first + reach->edge_offsets[edge],
                        .edge = edge,
                        .source = source};
    return add_word(search, &word);
}

static const struct ttd_region *region_of(const struct heap_reach *reach, uint64_t root)
{
    return heap_reach_region(reach, reach->roots[reach->graph.root_ids[root]].region);
}

/* Takes the roots outside of blocks that something hangs by, and drops the others. */
static enum ttd_status take_roots(struct search *search, const struct graph_classes *classes)
{
    struct heap_reach *reach = search->reach;
    struct graph *graph = &reach->graph;
    enum ttd_status status = TTD_OK;
    for (uint64_t i = 0; i < graph->root_count && status == TTD_OK; i++) {
        if (!(graph->root_flags[i] & GRAPH_STALE))
            continue;
        if (graph_holding_of(classes, graph->root_targets[i]) == GRAPH_HELD) {
            graph->root_flags[i] = REACH_ROOT_DROPPED;
            continue;
        }
        struct word word = {.address = region_of(reach, i)->begin +
                                       reach->roots[graph->root_ids[i]].offset,
                            .edge = i,
                            .source = HEAP_NO_NODE};
        status = add_word(search, &word);
    }
    return status;
}

/* Takes the words of blocks that something hangs by, and clears the flags of the others. */
static enum ttd_status take_words(struct search *search, const struct graph_classes *classes)
{
    struct graph *graph = &search->reach->graph;
    enum ttd_status status = TTD_OK;
    for (uint32_t node = 0; node < graph->node_count && status == TTD_OK; node++) {
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1] && status == TTD_OK; i++) {
            if (!(graph->flags[i] & GRAPH_STALE))
                continue;
            if (!is_lost(classes, node) &&
                graph_holding_of(classes, graph->targets[i]) != GRAPH_HELD)
                status = add_edge(search, node, i);
            else
                graph->flags[i] &= (uint8_t)~GRAPH_STALE;
        }
    }
    return status;
}

static int compare_words(const void *left, const void *right)
{
    const struct word *a = left;
    const struct word *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

/* Sorts the words by address. They are, unless regions or blocks overlap or are in no order:
 * qsort() may take as much memory again. */
static void sort_words(struct search *search)
{
    for (size_t i = 1; i < search->count; i++) {
        if (search->words[i - 1].address <= search->words[i].address)
            continue;
        qsort(search->words, search->count, sizeof *search->words, compare_words);
        return;
    }
}

/* The first word from `low` on that is at an address or behind it; `high` if none before is. */
static size_t find_between(const struct search *search, size_t low, size_t high, uint64_t address)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (search->words[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first word that is at an address or behind it. */
static size_t find_word(const struct search *search, uint64_t address)
{
    return find_between(search, 0, search->count, address);
}

/* The first word behind a block, whose first word is `first`. Most blocks have few. */
static size_t find_end(const struct search *search, size_t first, uint64_t address, uint64_t size)
{
    if (size > UINT64_MAX - address)
        return search->count;
    size_t low = first, step = 1;
    while (step < search->count - low && search->words[low + step].address < address + size) {
        low += step;
        step *= 2;
    }
    size_t high = step < search->count - low ? low + step : search->count;
    return find_between(search, low, high, address + size);
}

static void release(const struct search *search, const struct heap_block *block,
                    struct ttd_position position)
{
    size_t first = find_word(search, block->address);
    size_t low = first + search->count;
    size_t high = find_end(search, first, block->address, block->size) + search->count;
    for (; low < high; low /= 2, high /= 2) {
        if (low & 1)
            search->released[low++] = position;
        if (high & 1)
            search->released[--high] = position;
    }
}

/* realloc() has copied what the block had before. */
static void acquire(const struct search *search, const struct heap_effect *effect)
{
    const struct heap_block *block = effect->block;
    uint64_t copied = effect->previous->size < block->size ? effect->previous->size : block->size;
    size_t first = find_word(search, block->address);
    size_t end = find_end(search, first, block->address, copied);
    for (size_t i = first; i < end; i++) {
        uint32_t source = search->words[i].source;
        if (source == HEAP_NO_NODE || search->reach->nodes.blocks[source].event != block->event)
            break;
        search->words[i].is_copied = true;
    }
}

static enum ttd_status see_effect(void *context, const struct heap_effect *effect)
{
    const struct search *search = context;
    if (effect->kind == HEAP_ACQUIRED && effect->previous)
        acquire(search, effect);
    else if (effect->kind != HEAP_ACQUIRED && effect->block)
        release(search, effect->block, effect->position);
    return TTD_OK;
}

static struct ttd_position last_release(const struct search *search, size_t word)
{
    struct ttd_position last = ttd_position_min();
    for (size_t i = word + search->count; i; i /= 2) {
        if (ttd_position_compare(search->released[i], last) > 0)
            last = search->released[i];
    }
    return last;
}

/* Whether the block that had a word before may have pointed at a node. */
static bool may_be_relic(const struct search *search, size_t word, uint32_t target)
{
    const struct heap_block *block = &search->reach->nodes.blocks[target];
    return !search->words[word].is_copied &&
           ttd_position_compare(last_release(search, word), block->allocated) > 0;
}

/* Clears the flags of words of blocks that are not stale, and drops roots that are. */
static void decide(const struct search *search)
{
    const struct heap_reach *reach = search->reach;
    struct graph *graph = &search->reach->graph;
    for (size_t i = 0; i < search->count; i++) {
        const struct word *word = &search->words[i];
        if (word->source == HEAP_NO_NODE) {
            if (may_be_relic(search, i, graph->root_targets[word->edge]) &&
                reach_between_has_blocks(reach, region_of(reach, word->edge)))
                graph->root_flags[word->edge] = REACH_ROOT_DROPPED;
        } else if (!may_be_relic(search, i, graph->targets[word->edge])) {
            graph->flags[word->edge] &= (uint8_t)~GRAPH_STALE;
        }
    }
}

static enum ttd_status replay(struct search *search, const struct heap_trace *trace,
                              struct ttd_error *error)
{
    struct heap_observer observer = {.context = search,
                                     .effect = see_effect,
                                     .unwanted = HEAP_EFFECT_BIT(HEAP_DESTROYED) |
                                                 HEAP_EFFECT_BIT(HEAP_UNKNOWN_RELEASE)};
    struct heap_route route = {.to = search->reach->snapshot.position, .observer = &observer};
    struct heap_arrival arrival;
    search->released = calloc(2 * search->count, sizeof *search->released);
    if (!search->released)
        return TTD_ERROR_NO_MEMORY;
    sort_words(search);
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    heap_arrival_free(&arrival);
    if (status == TTD_OK)
        decide(search);
    return status;
}

enum ttd_status reach_stale_apply(struct heap_reach *reach, const struct heap_trace *trace,
                                  bool keeps_offsets, struct ttd_error *error)
{
    struct search search = {.reach = reach};
    flag_all(reach);
    enum ttd_status status = graph_classify(&reach->graph, &reach->verdicts);
    if (status == TTD_OK)
        status = take_words(&search, &reach->verdicts);
    if (status == TTD_OK)
        status = take_roots(&search, &reach->verdicts);
    if (!keeps_offsets)
        reach_free_offsets(reach);
    /* Without such words the classes stay as they are: by other flags nothing hangs. */
    bool is_changing = status == TTD_OK && search.count;
    if (is_changing) {
        graph_classes_free(&reach->verdicts);
        status = replay(&search, trace, error);
    }
    reach_between_settle(&reach->graph);
    if (is_changing && status == TTD_OK)
        status = graph_classify(&reach->graph, &reach->verdicts);
    free(search.words);
    free(search.released);
    return status;
}
