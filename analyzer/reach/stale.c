/* SPDX-License-Identifier: MIT */
#include "reach/stale.h"

#include <stdlib.h>

#include "base/task.h"
#include "graph/graph_classes.h"
#include "reach/builder.h"
#include "reach/nodes.h"
#include "travel/replay_part.h"

/* Edges between a prefetch and its use. */
#define AHEAD 16

/* An allocator gets memory by pages of at least this size. */
#define PAGE 4096

struct search {
    struct heap_reach *reach;
    struct stale_words words;
    struct copied_words copied;
    struct reach_survivors survivors;
};

/* Clears the flags of edges that nothing hangs by. */
static enum ttd_status stale_clear_needless(void *context, size_t begin, size_t end)
{
    struct heap_reach *reach = context;
    struct graph *graph = &reach->graph;
    const struct graph_classes *classes = &reach->verdicts;
    for (size_t node = begin; node < end; node++) {
        bool is_held = graph_class_of(classes, (uint32_t)node) != GRAPH_INDIRECTLY_LOST;
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
            if (!(graph->flags[i] & GRAPH_STALE))
                continue;
            if (!is_held || graph_holding_of(classes, graph->targets[i]) == GRAPH_HELD)
                graph->flags[i] &= (uint8_t)~GRAPH_STALE;
        }
    }
    return TTD_OK;
}

/* Drops the roots outside of blocks that nothing hangs by: their targets are held by others, as
 * strongly as `enough` at least. */
static void stale_drop_needless(struct graph *graph, const struct graph_classes *classes,
                                enum graph_holding enough)
{
    for (uint64_t i = 0; i < graph->root_count; i++) {
        if (graph->root_flags[i] & GRAPH_STALE &&
            graph_holding_of(classes, graph->root_targets[i]) <= enough)
            graph->root_flags[i] = REACH_ROOT_DROPPED;
    }
}

static enum ttd_status stale_see_effect(void *context, const struct heap_effect *effect)
{
    struct search *search = context;
    const struct heap_block *block = effect->block;
    if (effect->kind != HEAP_ACQUIRED && block)
        stale_words_release(&search->words, block, effect->position);
    if (effect->kind == HEAP_ACQUIRED ? !effect->previous : !block || !block->user)
        return TTD_OK;
    return copied_words_see(&search->copied, &search->words, search->reach, effect);
}

static bool stale_survives(void *context, const struct heap_block *block)
{
    const struct search *search = context;
    return reach_survivors_have(&search->survivors, block);
}

static uint32_t stale_target_of(const struct search *search, uint32_t word)
{
    return stale_words_target(&search->words, &search->reach->graph, word);
}

/* Whether the memory of a word was released after a birth, and the word may have been there. */
static bool stale_was_released_after(const struct search *search, uint32_t word,
                                     struct ttd_position born)
{
    return search->words.ages[word] == WORD_AGE_OF_MEMORY &&
           ttd_position_compare(stale_words_last_release(&search->words, word), born) > 0;
}

/* Whether a block that had the word of an edge earlier may have pointed at the target, or at a
 * block that was there before the target. */
static bool stale_may_be_relic(const struct search *search, uint32_t word)
{
    return search->words.ages[word] == WORD_AGE_RELIC ||
           stale_was_released_after(search, word,
                                    stale_words_first_birth(&search->words, &search->reach->nodes,
                                                            stale_target_of(search, word)));
}

/* Whether a block that had the word of a root earlier may have pointed at the very target. */
static bool stale_may_have_pointed(const struct search *search, uint32_t word)
{
    return stale_was_released_after(
        search, word, heap_nodes_allocated(&search->reach->nodes, stale_target_of(search, word)));
}

/* Whether a node begins or ends in the page of a word: then the page is the allocator's. */
static bool stale_has_node_in_page(const struct heap_reach *reach, uint64_t address)
{
    uint64_t page = address / PAGE * PAGE;
    return reach_between_has_nodes(reach, page, page + (PAGE - 1));
}

/*
 * Whether a word between blocks holds nothing. Where a block was once, and the memory is the
 * allocator's still, the allocator has written the word, or it is a relic. That is certain where
 * the extent of the allocator's memory is known, and in a page that has another block. Elsewhere
 * the program may have mapped memory of its own since; a word that may be a relic is one if its
 * region has blocks.
 */
static bool stale_holds_nothing(const struct search *search, uint32_t word, uint64_t root)
{
    const struct heap_reach *reach = search->reach;
    const struct ttd_region *region =
        heap_reach_region(reach, reach->roots[reach->graph.root_ids[root]].region);
    if (ttd_position_compare(stale_words_last_release(&search->words, word), ttd_position_min()) ==
        0)
        return false;
    return region->module != TTD_NONE ||
           stale_has_node_in_page(
               reach, packed_table_get(&search->words.words.table, word, STALE_ADDRESS)) ||
           (stale_may_have_pointed(search, word) && reach_between_has_blocks(reach, region));
}

/* Clears the flags of words of blocks that are not stale, and drops roots that hold nothing. */
static enum ttd_status stale_decide(void *context, size_t begin, size_t end)
{
    const struct search *search = context;
    const struct heap_reach *reach = search->reach;
    struct graph *graph = &search->reach->graph;
    for (size_t i = begin; i < end; i++) {
        uint32_t word = (uint32_t)i;
        if (i + AHEAD < end)
            packed_table_prefetch(&reach->nodes.table, stale_target_of(search, word + AHEAD));
        uint64_t edge = packed_table_get(&search->words.words.table, word, STALE_EDGE);
        if (packed_table_get(&search->words.words.table, word, STALE_IS_ROOT)) {
            if (stale_holds_nothing(search, word, edge))
                graph->root_flags[edge] = REACH_ROOT_RELIC;
        } else if (!stale_may_be_relic(search, word)) {
            graph->flags[edge] &= (uint8_t)~GRAPH_STALE;
        }
    }
    return TTD_OK;
}

/* Whether realloc() may have copied a word: the blocks before matter then, wherever they were. */
static bool stale_has_copied_words(const struct heap_reach *reach)
{
    const struct graph *graph = &reach->graph;
    for (uint32_t node = 0; node < reach->nodes.count; node++) {
        if (heap_nodes_get(&reach->nodes, node, HEAP_NODE_ACTION) != TTD_ACTION_REALLOC)
            continue;
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
            if (graph->flags[i] & GRAPH_STALE)
                return true;
        }
    }
    return false;
}

static enum ttd_status stale_replay_all(struct search *search, const struct heap_trace *trace,
                                        struct ttd_error *error)
{
    struct heap_observer observer = {.context = search,
                                     .effect = stale_see_effect,
                                     .survives = stale_survives,
                                     .unwanted = HEAP_EFFECT_BIT(HEAP_DESTROYED) |
                                                 HEAP_EFFECT_BIT(HEAP_UNKNOWN_RELEASE)};
    struct heap_route route = {.to = search->reach->snapshot.position, .observer = &observer};
    struct heap_arrival arrival;
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    /* Effects of the blocks of destroyed heaps come now. */
    if (status == TTD_OK)
        heap_live_discard_stale(&arrival.cursor.replay.live);
    heap_arrival_free(&arrival);
    return status;
}

static enum ttd_status stale_see_end(void *context, const struct heap_effect *effect)
{
    struct search *search = context;
    stale_words_release(&search->words, effect->block, effect->position);
    return TTD_OK;
}

/* Replays only the blocks that had a word, or the address of a target. */
static enum ttd_status stale_replay_part(struct search *search, const struct heap_trace *trace,
                                         struct ttd_error *error)
{
    struct heap_observer observer = {.context = search,
                                     .effect = stale_see_end,
                                     .survives = stale_survives,
                                     .unwanted = HEAP_EFFECT_BIT(HEAP_ACQUIRED) |
                                                 HEAP_EFFECT_BIT(HEAP_DESTROYED) |
                                                 HEAP_EFFECT_BIT(HEAP_UNKNOWN_RELEASE)};
    struct heap_part_route route = {.memory = {&search->words, stale_words_meet},
                                    .end = UINT64_MAX,
                                    .to = search->reach->snapshot.position,
                                    .tolerates_damage = true,
                                    .observer = &observer};
    return heap_replay_part(trace, &route, error);
}

/* Only blocks that were released are kept in memory: the others are nodes. */
static enum ttd_status stale_replay(struct search *search, const struct heap_trace *trace,
                                    struct ttd_error *error)
{
    struct heap_reach *reach = search->reach;
    struct heap_trace checked_trace = *trace;
    checked_trace.is_checked = true;
    enum ttd_status status = reach_survivors_init(&search->survivors, &reach->nodes);
    if (status == TTD_OK)
        status = stale_has_copied_words(reach) ? stale_replay_all(search, &checked_trace, error)
                                               : stale_replay_part(search, &checked_trace, error);
    if (status == TTD_OK) {
        stale_words_settle(&search->words);
        status = copied_words_decide(&search->copied, &search->words, reach, &search->survivors,
                                     &checked_trace, error);
    }
    copied_words_free(&search->copied);
    if (status == TTD_OK)
        status = halves_do(stale_decide, search, search, search->words.words.count);
    reach_survivors_free(&search->survivors);
    return status;
}

/* Leaves the flags and the roots that something hangs by. */
static enum ttd_status stale_clear_flags(struct heap_reach *reach,
                                         const struct heap_reach_options *options)
{
    struct graph *graph = &reach->graph;
    enum ttd_status status = graph_classes_mark(graph, &reach->verdicts);
    if (status != TTD_OK)
        return status;
    if (!options->omits_verdicts)
        (void)halves_do(stale_clear_needless, reach, reach, graph->node_count);
    stale_drop_needless(graph, &reach->verdicts,
                        options->omits_verdicts ? GRAPH_HELD_WEAKLY : GRAPH_HELD);
    return TTD_OK;
}

static bool stale_has_doubtful_roots(const struct graph *graph)
{
    for (uint64_t i = 0; i < graph->root_count; i++) {
        if (graph->root_flags[i] & GRAPH_STALE)
            return true;
    }
    return false;
}

/* Brings the classes up to date once stale words are decided. */
static enum ttd_status stale_mark_again(struct heap_reach *reach, bool are_roots_changed)
{
    if (!are_roots_changed)
        return graph_classes_mark_trusted(&reach->graph, &reach->verdicts);
    graph_classes_free(&reach->verdicts);
    return graph_classes_mark(&reach->graph, &reach->verdicts);
}

enum ttd_status reach_stale_apply(struct heap_reach *reach, const struct heap_trace *trace,
                                  const struct heap_reach_options *options, struct ttd_error *error)
{
    struct search search = {.reach = reach};
    if (options->omits_verdicts && !stale_has_doubtful_roots(&reach->graph))
        return TTD_OK;
    enum ttd_status status = stale_clear_flags(reach, options);
    if (status == TTD_OK)
        status = stale_words_take(&search.words, reach);
    if (!options->keeps_offsets)
        edge_offsets_free(&reach->offsets);
    /* Without such words the held blocks stay the same: by other flags nothing hangs. */
    bool is_changing = status == TTD_OK && search.words.words.count;
    if (options->omits_verdicts)
        graph_classes_free(&reach->verdicts);
    if (is_changing)
        status = stale_words_begin(&search.words, reach);
    if (is_changing && status == TTD_OK)
        status = stale_replay(&search, trace, error);
    stale_words_free(&search.words);
    bool are_roots_changed;
    if (status == TTD_OK)
        status = reach_between_settle(reach, options, &are_roots_changed);
    if (status != TTD_OK || options->omits_verdicts)
        return status;
    if (is_changing)
        status = stale_mark_again(reach, are_roots_changed);
    return status == TTD_OK ? graph_classes_lead(&reach->graph, &reach->verdicts) : status;
}
