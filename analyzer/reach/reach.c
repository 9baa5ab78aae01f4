/* SPDX-License-Identifier: MIT */
#include "reach/reach.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "common/search.h"
#include "reach/builder.h"
#include "reach/stale.h"
#include "reach/usual_offsets.h"
#include "travel/replay_part.h"

/** Adds an edge from each block to the one that it lies in: as long as the inner one is reachable,
 * the memory of the outer one is in use. @return TTD_OK, TTD_ERROR_NO_MEMORY. */
static enum ttd_status reach_within_apply(struct reach_builder *builder)
{
    const struct heap_nodes *nodes = &builder->reach->nodes;
    enum ttd_status status = TTD_OK;
    for (uint32_t node = 0; nodes->outer && node < nodes->count && status == TTD_OK; node++) {
        struct reach_late_edge edge = {
            .source = node, .target = nodes->outer[node], .offset = REACH_LIES_WITHIN};
        if (edge.target == HEAP_NO_NODE)
            continue;
        status = grow_array((void **)&builder->late, &builder->late_capacity,
                            builder->late_count + 1, sizeof *builder->late);
        if (status == TTD_OK)
            builder->late[builder->late_count++] = edge;
    }
    return status;
}

struct search {
    struct reach_builder *builder;
    /** By word: the first one from there on that no block was seen over, itself if so. As many as
     * there are words, and one more. */
    size_t *next;
};

static uint64_t reach_inherited_word_address(const struct reach_builder *builder,
                                             const struct ttd_reference *reference)
{
    return builder->reach->regions[reference->region - 1].begin + reference->offset;
}

/* The first word at an address or behind it. Words come in the order of addresses, since regions
 * do; where they do not (only in a made-up trace), some are missed and count as roots. */
static size_t reach_find_word(const struct reach_builder *builder, uint64_t address)
{
    size_t low = 0, high = builder->between_count;
    SEARCH_SORTED(low, high, middle,
                  reach_inherited_word_address(builder, &builder->between[middle]) < address);
    return low;
}

/* The first word from `word` on that no block was seen over. Shortens the way there. */
static size_t reach_next_free(const struct search *search, size_t word)
{
    size_t end = word;
    while (search->next[end] != end)
        end = search->next[end];
    while (search->next[word] != end) {
        size_t following = search->next[word];
        search->next[word] = end;
        word = following;
    }
    return end;
}

static enum ttd_status reach_inherited_see_effect(void *context, const struct heap_effect *effect)
{
    const struct search *search = context;
    const struct reach_builder *builder = search->builder;
    if (effect->kind != HEAP_ACQUIRED || !effect->block->size)
        return TTD_OK;
    uint64_t begin = effect->block->address, last = begin + effect->block->size - 1;
    size_t word = reach_next_free(search, reach_find_word(builder, begin));
    while (word < builder->between_count &&
           reach_inherited_word_address(builder, &builder->between[word]) <= last) {
        search->next[word] = word + 1;
        word = reach_next_free(search, word + 1);
    }
    return TTD_OK;
}

/* Whether a word is among some bytes. */
static bool reach_inherited_meets(void *context, uint64_t address, uint64_t size)
{
    const struct search *search = context;
    const struct reach_builder *builder = search->builder;
    size_t word = reach_find_word(builder, address);
    return word < builder->between_count &&
           reach_inherited_word_address(builder, &builder->between[word]) - address < size;
}

static enum ttd_status reach_add_roots(const struct search *search)
{
    struct reach_builder *builder = search->builder;
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < builder->between_count && status == TTD_OK; i++) {
        if (search->next[i] == i)
            status = reach_builder_add_root(builder, &builder->between[i], 0);
    }
    return status;
}

/**
 * Adds the roots among the builder's words between blocks. For that the trace is replayed once
 * more, unless there are none.
 *
 * @return as heap_replay_to().
 */
static enum ttd_status reach_inherited_apply(struct reach_builder *builder,
                                             const struct heap_trace *trace,
                                             struct ttd_error *error)
{
    struct search search = {.builder = builder};
    struct heap_observer observer = {.context = &search,
                                     .effect = reach_inherited_see_effect,
                                     .unwanted = ~HEAP_EFFECT_BIT(HEAP_ACQUIRED)};
    struct heap_part_route route = {.memory = {&search, reach_inherited_meets},
                                    .end = UINT64_MAX,
                                    .to = builder->reach->snapshot.position,
                                    .tolerates_damage = true,
                                    .observer = &observer};
    if (!builder->between_count)
        return TTD_OK;
    search.next = malloc((builder->between_count + 1) * sizeof *search.next);
    if (!search.next)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i <= builder->between_count; i++)
        search.next[i] = i;
    enum ttd_status status = TTD_OK;
    /* Where a recorded block was, one that is not recorded may follow. */
    if (!trace->choice.is_made)
        status = heap_replay_part(trace, &route, error);
    if (status == TTD_OK)
        status = reach_add_roots(&search);
    free(search.next);
    return status;
}

struct rules {
    const struct reach_builder *builder;
    struct heap_reach *reach;
    struct usual_offsets usual;
};

static uint32_t reach_root_offset(const struct heap_reach *reach, uint64_t root)
{
    uint64_t offset = reach->roots[reach->graph.root_ids[root]].target_offset;
    return offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX;
}

static bool reach_has_class_word(const struct rules *rules, uint32_t node, uint32_t offset)
{
    const struct reach_class_word *words = rules->builder->class_words;
    size_t low = 0, high = rules->builder->class_word_count;
    SEARCH_SORTED(low, high, middle,
                  words[middle].node < node ||
                      (words[middle].node == node && words[middle].offset < offset));
    return low < rules->builder->class_word_count && words[low].node == node &&
           words[low].offset == offset;
}

/* Whether a pointer behind the start of a block owns it. */
static bool reach_owns(const struct rules *rules, uint32_t node, uint32_t offset)
{
    const struct heap_reach *reach = rules->reach;
    const struct heap_nodes *nodes = &reach->nodes;
    if ((offset == 8 || offset == 16) && reach_is_from_new_array(nodes, node))
        return true;
    if (reach->node_classes && reach->node_classes[node] &&
        reach_has_class_word(rules, node, offset))
        return true;
    return usual_offsets_have(&rules->usual, reach, node, offset);
}

static enum ttd_status reach_list_inner(struct heap_reach *reach, uint64_t edge, uint32_t offset)
{
    enum ttd_status status = grow_array((void **)&reach->inner, &reach->inner_capacity,
                                        reach->inner_count + 1, sizeof *reach->inner);
    if (status == TTD_OK)
        reach->inner[reach->inner_count++] = (struct heap_inner_edge){edge, offset};
    return status;
}

static enum ttd_status reach_set_flags(const struct rules *rules, bool lists_inner)
{
    struct heap_reach *reach = rules->reach;
    struct graph *graph = &reach->graph;
    enum ttd_status status = TTD_OK;
    for (uint64_t i = 0; i < graph->edge_count && status == TTD_OK; i++) {
        uint32_t offset = edge_offset_in_target(&reach->offsets, i);
        if (!offset || reach_owns(rules, graph->targets[i], offset))
            continue;
        graph->flags[i] |= GRAPH_INTERIOR;
        if (lists_inner)
            status = reach_list_inner(reach, i, offset);
    }
    for (uint64_t i = 0; i < graph->root_count; i++) {
        uint32_t offset = reach_root_offset(reach, i);
        if (offset && !reach_owns(rules, graph->root_targets[i], offset))
            graph->root_flags[i] |= GRAPH_INTERIOR;
    }
    return status;
}

/* Whether any pointer points behind the start of a block. */
static bool reach_has_inner(const struct heap_reach *reach)
{
    for (uint64_t i = 0; i < reach->graph.edge_count; i++) {
        if (edge_offset_in_target(&reach->offsets, i))
            return true;
    }
    for (uint64_t i = 0; i < reach->graph.root_count; i++) {
        if (reach_root_offset(reach, i))
            return true;
    }
    return false;
}

/** Flags edges and roots without a matching rule as GRAPH_INTERIOR. @return TTD_OK,
 * TTD_ERROR_NO_MEMORY. */
static enum ttd_status reach_rules_apply(const struct reach_builder *builder,
                                         const struct heap_reach_options *options,
                                         const struct heap_stack_callers *callers)
{
    struct rules rules = {.builder = builder, .reach = builder->reach};
    if (!reach_has_inner(builder->reach))
        return TTD_OK;
    enum ttd_status status = usual_offsets_find(&rules.usual, builder->reach, callers);
    if (status == TTD_OK)
        status = reach_set_flags(&rules, options->lists_inner);
    usual_offsets_free(&rules.usual);
    return status;
}

static enum ttd_status reach_add_regions(struct heap_reach *reach,
                                         const struct ttd_regions *regions)
{
    size_t count = (size_t)regions->first - 1 + regions->count;
    if (regions->snapshot != reach->snapshot.number)
        return TTD_OK;
    /* Regions behind a gap in a damaged file are left out, and words in them count as misplaced. */
    if (regions->first - 1 > reach->region_count)
        return TTD_OK;
    enum ttd_status status = grow_array((void **)&reach->regions, &reach->region_capacity, count,
                                        sizeof *reach->regions);
    if (status != TTD_OK)
        return status;
    memcpy(&reach->regions[regions->first - 1], regions->regions,
           regions->count * sizeof *reach->regions);
    reach->region_count = count;
    return TTD_OK;
}

static enum ttd_status reach_add_classes(struct heap_reach *reach,
                                         const struct ttd_classes *classes)
{
    if (classes->snapshot != reach->snapshot.number || !classes->count)
        return TTD_OK;
    enum ttd_status status =
        grow_array((void **)&reach->classes, &reach->class_capacity,
                   reach->class_count + classes->count, sizeof *reach->classes);
    if (status != TTD_OK)
        return status;
    memcpy(&reach->classes[reach->class_count], classes->classes,
           classes->count * sizeof *reach->classes);
    reach->class_count += classes->count;
    return TTD_OK;
}

static enum ttd_status reach_take_batch(struct heap_reach *reach, const struct ttd_batch *batch)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < batch->count && status == TTD_OK; i++) {
        if (batch->kind == TTD_KIND_REGIONS)
            status = reach_add_regions(reach, &batch->u.regions[i]);
        else if (batch->kind == TTD_KIND_CLASSES)
            status = reach_add_classes(reach, &batch->u.classes[i]);
    }
    return status;
}

/* Regions and classes have to be known before the words that lie in them. */
static enum ttd_status reach_read_regions_and_classes(struct heap_reach *reach,
                                                      struct ttd_reader *reader,
                                                      struct ttd_error *error)
{
    enum ttd_status status =
        ttd_reader_rewind(reader, TTD_KIND_BIT(TTD_KIND_REGIONS) | TTD_KIND_BIT(TTD_KIND_CLASSES));
    while (status == TTD_OK) {
        struct ttd_batch batch;
        status = ttd_reader_next(reader, &batch, error);
        if (status == TTD_OK)
            status = reach_take_batch(reach, &batch);
    }
    return heap_is_over(status) ? TTD_OK : status;
}

enum ttd_status heap_reach_read_regions(const struct heap_trace *trace,
                                        const struct ttd_snapshot *snapshot,
                                        struct heap_reach *reach, struct ttd_error *error)
{
    *reach = (struct heap_reach){.snapshot = *snapshot};
    return reach_read_regions_and_classes(reach, trace->reader, error);
}

/* Distance of the prefetch, in references. */
#define AHEAD 32

static enum ttd_status reach_see_references(struct reach_builder *builder,
                                            const struct reach_reference_group *group)
{
    enum ttd_status status = TTD_OK;
    for (size_t i = 0; i < group->count && status == TTD_OK; i++) {
        if (i + AHEAD < group->count && group->targets[i + AHEAD] != HEAP_NO_NODE)
            packed_table_prefetch(&builder->reach->nodes.table, group->targets[i + AHEAD]);
        status = reach_builder_add(builder, &group->references[i], group->targets[i]);
    }
    return status;
}

static enum ttd_status reach_read_references(struct reach_builder *builder,
                                             struct ttd_reader *reader, struct ttd_error *error)
{
    struct reach_references references;
    enum ttd_status status = reach_references_begin(&references, builder, reader, error);
    while (status == TTD_OK) {
        const struct reach_reference_group *group;
        status = reach_references_next(&references, &group);
        if (status == TTD_OK)
            status = reach_see_references(builder, group);
    }
    reach_references_end(&references);
    return heap_is_over(status) ? reach_builder_add_kept(builder) : status;
}

enum ttd_status heap_reach_begin(struct heap_reach *reach, const struct ttd_snapshot *snapshot,
                                 struct heap_replay *replay)
{
    reach->snapshot = *snapshot;
    enum ttd_status status = reach_in_flight_begin(reach, replay);
    if (status == TTD_OK)
        status = heap_nodes_copy(&reach->nodes, &replay->live);
    reach_in_flight_end(reach, &replay->live);
    return status;
}

enum ttd_status heap_reach_read(struct heap_reach *reach, const struct heap_trace *trace,
                                const struct heap_reach_options *options, struct ttd_error *error)
{
    struct ttd_snapshot *snapshot = &reach->snapshot;
    struct reach_builder builder;
    enum ttd_status status = reach_read_regions_and_classes(reach, trace->reader, error);
    if (status != TTD_OK)
        return status;
    reach->offsets.is_without_sources =
        !options->keeps_offsets && (options->finds_classes_only || options->omits_verdicts);
    status = reach_builder_init(&builder, reach, options);
    /* The process had blocks that the trace does not list: from its beginning, or because the
     * recorder has not chosen them. */
    uint32_t flags = ttd_reader_trace(trace->reader)->flags;
    builder.keeps_between = trace->choice.is_made || flags & TTD_TRACE_INHERITS ||
                            (flags & TTD_TRACE_ATTACHED && !trace->choice.has_earlier);
    if (status == TTD_OK)
        status = reach_read_references(&builder, trace->reader, error);
    /* Parts that are missing in a damaged file make the snapshot incomplete, as the recorder would
     * say it. */
    if (builder.seen != snapshot->references || reach->region_count != snapshot->regions)
        snapshot->flags |= TTD_SNAPSHOT_INCOMPLETE;
    if (status == TTD_OK)
        status = reach_inherited_apply(&builder, trace, error);
    if (status == TTD_OK)
        status = reach_within_apply(&builder);
    if (status == TTD_OK && !options->finds_classes_only)
        status = reach_in_flight_apply(&builder);
    if (status == TTD_OK)
        status = reach_builder_finish(&builder);
    bool has_verdicts = !options->omits_verdicts && !options->finds_classes_only;
    if (status == TTD_OK && has_verdicts)
        status = reach_rules_apply(&builder, options, &trace->hook.callers);
    reach_builder_free(&builder);
    return status == TTD_OK && !options->finds_classes_only
               ? reach_stale_apply(reach, trace, options, error)
               : status;
}

static enum ttd_status reach_choose_snapshot(const struct heap_trace *trace,
                                             const struct heap_reach_options *options,
                                             struct ttd_snapshot *chosen, struct ttd_error *error)
{
    struct heap_snapshots snapshots;
    enum ttd_status status = heap_snapshots_find(trace, &snapshots, error);
    if (status != TTD_OK)
        return status;
    const struct ttd_snapshot *snapshot =
        options->snapshot ? heap_snapshots_get(&snapshots, options->snapshot)
                          : heap_snapshots_before(&snapshots, options->at, TTD_SNAPSHOT_REFERENCES);
    bool has_references = snapshot && snapshot->contents & TTD_SNAPSHOT_REFERENCES;
    *chosen = has_references ? *snapshot : (struct ttd_snapshot){.number = 0};
    heap_snapshots_free(&snapshots);
    return TTD_OK;
}

static enum ttd_status reach_build(const struct heap_trace *trace,
                                   const struct heap_reach_options *options,
                                   const struct ttd_snapshot *snapshot, struct heap_reach *reach,
                                   struct ttd_error *error)
{
    struct heap_arrival arrival;
    struct heap_route route = {.to = snapshot->position, .wants_blocks_only = true};
    /* The live blocks are copied and the replay ends before the graph is built: building needs the
     * reader. */
    enum ttd_status status = heap_replay_to(&arrival, trace, &route, error);
    if (status == TTD_OK)
        status = heap_reach_begin(reach, snapshot, &arrival.cursor.replay);
    heap_arrival_end(&arrival, &reach->outcome);
    return status == TTD_OK ? heap_reach_read(reach, trace, options, error) : status;
}

enum ttd_status heap_reach_build(const struct heap_trace *trace,
                                 const struct heap_reach_options *options,
                                 const struct ttd_snapshot *snapshot, struct heap_reach *reach,
                                 struct ttd_error *error)
{
    memset(reach, 0, sizeof *reach);
    enum ttd_status status = reach_build(trace, options, snapshot, reach, error);
    if (status != TTD_OK)
        heap_reach_free(reach);
    return status;
}

enum ttd_status heap_reach_find(const struct heap_trace *trace,
                                const struct heap_reach_options *options, struct heap_reach *reach,
                                struct ttd_error *error)
{
    struct ttd_snapshot snapshot;
    memset(reach, 0, sizeof *reach);
    enum ttd_status status = reach_choose_snapshot(trace, options, &snapshot, error);
    return status == TTD_OK && snapshot.number
               ? heap_reach_build(trace, options, &snapshot, reach, error)
               : status;
}

void heap_reach_free(struct heap_reach *reach)
{
    heap_nodes_free(&reach->nodes);
    graph_free(&reach->graph);
    graph_classes_free(&reach->verdicts);
    free(reach->in_flight);
    free(reach->regions);
    free(reach->roots);
    edge_offsets_free(&reach->offsets);
    free(reach->inner);
    free(reach->relics);
    free(reach->node_classes);
    free(reach->classes);
    memset(reach, 0, sizeof *reach);
}

/* Finding the classes of blocks: the targets of their first words. */

static enum ttd_status reach_number_blocks(const struct heap_reach *reach,
                                           struct heap_block_classes *classes)
{
    enum ttd_status status = TTD_OK;
    map_init(&classes->numbers);
    for (uint32_t node = 0; reach->node_classes && node < reach->nodes.count && status == TTD_OK;
         node++) {
        if (reach->node_classes[node])
            status = map_set(&classes->numbers, heap_nodes_address(&reach->nodes, node),
                             heap_nodes_get(&reach->nodes, node, HEAP_NODE_EVENT),
                             reach->node_classes[node]);
    }
    return status;
}

enum ttd_status heap_classes_find(const struct heap_trace *trace, struct ttd_position position,
                                  struct heap_block_classes *classes, struct ttd_error *error)
{
    struct heap_reach_options options = {.at = position, .finds_classes_only = true};
    struct heap_reach reach;
    enum ttd_status status = heap_reach_find(trace, &options, &reach, error);
    if (status != TTD_OK)
        return status;
    *classes = (struct heap_block_classes){.snapshot = reach.snapshot,
                                           .misplaced = reach.misplaced,
                                           .classes = reach.classes,
                                           .count = reach.class_count};
    reach.classes = NULL;
    status = reach_number_blocks(&reach, classes);
    heap_reach_free(&reach);
    if (status != TTD_OK)
        heap_block_classes_free(classes);
    return status;
}
