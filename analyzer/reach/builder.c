/* SPDX-License-Identifier: MIT */
#include "reach/builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "common/search.h"

#define WORD 8

/* Of memory of the GNU C library: bytes of the header before a block, and the offset in the block
 * of the links of large free memory. */
#define HEADER 16
#define LINKS  16

/* References that room is made for beforehand, for each node. */
#define EDGES_PER_NODE 16

static enum ttd_status builder_index_classes(struct reach_builder *builder)
{
    struct heap_reach *reach = builder->reach;
    enum ttd_status status = TTD_OK;
    builder->class_min = UINT64_MAX;
    if (!reach->class_count)
        return TTD_OK;
    reach->node_classes = calloc((size_t)reach->nodes.count + 1, sizeof *reach->node_classes);
    if (!reach->node_classes)
        return TTD_ERROR_NO_MEMORY;
    for (size_t i = 0; i < reach->class_count && status == TTD_OK; i++) {
        uint64_t address = reach->classes[i].address;
        status = map_set(&builder->class_index, address, 0, (uint32_t)i);
        builder->class_min = address < builder->class_min ? address : builder->class_min;
        builder->class_max = address > builder->class_max ? address : builder->class_max;
    }
    return status;
}

/* Whether a block may have the number of the elements of an array, and no element: the pointer to
 * the first one then points behind the block. */
static bool builder_is_empty_array(const struct heap_nodes *nodes, uint32_t node)
{
    bool is_aligned = heap_nodes_get(nodes, node, HEAP_NODE_API) >= TTD_API_NEW_ARRAY_ALIGNED;
    return reach_is_from_new_array(nodes, node) &&
           heap_nodes_size(nodes, node) == (is_aligned ? 2 * WORD : WORD);
}

static bool builder_has_empty_arrays(const struct heap_nodes *nodes)
{
    for (uint32_t node = 0; node < nodes->count; node++) {
        if (builder_is_empty_array(nodes, node))
            return true;
    }
    return false;
}

/* The empty array that a word outside of nodes points behind; HEAP_NO_NODE if there is none.
 */
static uint32_t builder_find_empty_array(struct reach_builder *builder, uint64_t value)
{
    struct heap_nodes *nodes = &builder->reach->nodes;
    if (!builder->has_empty_arrays || !value)
        return HEAP_NO_NODE;
    uint32_t node = heap_nodes_at(nodes, value - 1);
    return node != HEAP_NO_NODE && builder_is_empty_array(nodes, node) ? node : HEAP_NO_NODE;
}

/* Most references are edges. A snapshot that says more than there may be is not believed. */
static size_t builder_expected_edges(const struct heap_reach *reach)
{
    uint64_t references = reach->snapshot.references;
    return references / EDGES_PER_NODE <= reach->nodes.count ? (size_t)references : 0;
}

enum ttd_status reach_builder_init(struct reach_builder *builder, struct heap_reach *reach,
                                   const struct heap_reach_options *options)
{
    bool finds_classes_only = options->finds_classes_only;
    *builder = (struct reach_builder){.reach = reach,
                                      .has_empty_arrays = builder_has_empty_arrays(&reach->nodes),
                                      .finds_classes_only = finds_classes_only};
    reach_ages_init(&builder->ages, !options->omits_verdicts && !finds_classes_only);
    map_init(&builder->class_index);
    reach->offsets.expected = finds_classes_only ? 0 : builder_expected_edges(reach);
    enum ttd_status status = graph_init(&reach->graph, reach->nodes.count);
    if (status == TTD_OK)
        status = graph_reserve_edges(&reach->graph, reach->offsets.expected);
    return status == TTD_OK ? builder_index_classes(builder) : status;
}

void reach_builder_free(struct reach_builder *builder)
{
    map_free(&builder->class_index);
    free(builder->late);
    free(builder->class_words);
    free(builder->between);
    memset(builder, 0, sizeof *builder);
}

/* The node that a word begins in. Most begin in the node of the word before, or in the next one;
 * where nodes lie within others, only a search finds the innermost. */
static uint32_t builder_find_begin(const struct reach_builder *builder, uint64_t word)
{
    struct heap_nodes *nodes = &builder->reach->nodes;
    for (uint32_t node = builder->near;
         !nodes->outer && node < nodes->count && node - builder->near < 2; node++)
        if (heap_nodes_has(nodes, node, word))
            return node;
    return heap_nodes_at(nodes, word);
}

/* The node that a word lies in with all its bytes. */
static uint32_t builder_find_source(struct reach_builder *builder, uint64_t word)
{
    struct heap_nodes *nodes = &builder->reach->nodes;
    uint32_t node = builder_find_begin(builder, word);
    if (node == HEAP_NO_NODE)
        return node;
    builder->near = node;
    return heap_nodes_last(nodes, node) - word >= WORD - 1 ? node : HEAP_NO_NODE;
}

/* The size that the GNU C library grants a block at least. */
static uint64_t builder_granted_size(uint64_t size)
{
    enum { HEAD = 8, ALIGNMENT = 16, LEAST = 24 };
    return size <= LEAST ? LEAST : (size + HEAD + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT - HEAD;
}

/* The block whose size a word exceeds, within the granted size: the program has asked how much that
 * is, and may have written the word. HEAP_NO_NODE if there is none. */
static uint32_t builder_find_granted(struct reach_builder *builder, uint64_t word)
{
    enum { WORDS = 3 /* of the least block */ };
    struct heap_nodes *nodes = &builder->reach->nodes;
    for (uint64_t i = 0; i < WORDS && word >= i * WORD; i++) {
        uint32_t node = heap_nodes_at(nodes, word - i * WORD);
        if (node == HEAP_NO_NODE)
            continue;
        uint64_t offset = word - heap_nodes_address(nodes, node);
        return offset + WORD <= builder_granted_size(heap_nodes_size(nodes, node)) ? node
                                                                                   : HEAP_NO_NODE;
    }
    return HEAP_NO_NODE;
}

/* Whether only things that end with the program hold a root: a register, or a frame of the thread
 * that ends it. */
static bool builder_is_weak(const struct heap_reach *reach, const struct ttd_region *region)
{
    if (region->kind == TTD_REGION_REGISTERS)
        return true;
    return region->kind == TTD_REGION_STACK && reach->snapshot.reason == TTD_SNAPSHOT_EXIT &&
           region->thread == reach->snapshot.thread;
}

static enum ttd_status builder_add_root(struct reach_builder *builder,
                                        const struct ttd_reference *reference, unsigned flags,
                                        uint32_t target)
{
    struct heap_reach *reach = builder->reach;
    uint64_t count = reach->graph.root_count;
    if (count == UINT32_MAX)
        return TTD_ERROR_NO_MEMORY;
    enum ttd_status status = grow_array((void **)&reach->roots, &reach->root_capacity,
                                        (size_t)count + 1, sizeof *reach->roots);
    if (status != TTD_OK)
        return status;
    reach->roots[count] = (struct heap_root_word){
        .region = reference->region,
        .offset = reference->offset,
        .target_offset = reference->value - heap_nodes_address(&reach->nodes, target)};
    return graph_add_root(&reach->graph, target, flags, (uint32_t)count);
}

enum ttd_status reach_builder_append(struct reach_builder *builder,
                                     const struct reach_late_edge *edge)
{
    struct heap_reach *reach = builder->reach;
    enum ttd_status status = edge_offsets_add(&reach->offsets, reach->graph.edge_count,
                                              edge->offset, edge->target_offset);
    unsigned flags = reach_ages_flag(&builder->ages, &reach->nodes, edge->source, edge->target);
    builder->source = edge->source;
    return status == TTD_OK ? graph_add_edge(&reach->graph, edge->source, edge->target, flags)
                            : status;
}

static enum ttd_status builder_add_edge(struct reach_builder *builder, uint64_t word,
                                        uint64_t value, uint32_t source, uint32_t target)
{
    const struct heap_nodes *nodes = &builder->reach->nodes;
    uint64_t distance = value - heap_nodes_address(nodes, target);
    struct reach_late_edge edge = {.source = source,
                                   .target = target,
                                   .target_offset =
                                       distance < UINT32_MAX ? (uint32_t)distance : UINT32_MAX,
                                   .offset = word - heap_nodes_address(nodes, source)};
    return source >= builder->source ? reach_builder_append(builder, &edge)
                                     : reach_builder_put_off(builder, &edge);
}

/* Takes a word that points at no block, if it points at a table of virtual functions. */
static enum ttd_status builder_add_class_word(struct reach_builder *builder, uint32_t source,
                                              uint64_t word, uint64_t value)
{
    if (source == HEAP_NO_NODE)
        return TTD_OK;
    uint64_t offset = word - heap_nodes_address(&builder->reach->nodes, source);
    uint32_t class = map_get(&builder->class_index, value, 0);
    if (class == MAP_NONE || offset > UINT32_MAX)
        return TTD_OK;
    if (!offset) {
        builder->reach->node_classes[source] = class + 1;
        return TTD_OK;
    }
    enum ttd_status status =
        grow_array((void **)&builder->class_words, &builder->class_word_capacity,
                   builder->class_word_count + 1, sizeof *builder->class_words);
    if (status == TTD_OK)
        builder->class_words[builder->class_word_count++] =
            (struct reach_class_word){source, (uint32_t)offset};
    return status;
}

/*
 * Whether a word of a block may be the first of two links of the GNU C library. It sorts large free
 * memory by links in bytes 16 to 31, where a block then finds them: the address of another header,
 * or of the memory's own if no other has its size. The first word of a header is also the last one
 * of the block before; both links seem to point at it.
 */
static bool builder_is_first_link(const struct reach_builder *builder,
                                  const struct ttd_reference *reference)
{
    const struct ttd_region *region = heap_reach_region(builder->reach, reference->region);
    struct heap_nodes *nodes = &builder->reach->nodes;
    uint64_t block = reference->value + HEADER;
    uint32_t node = heap_nodes_at(nodes, block);
    return region->begin + reference->offset == block + LINKS && region->kind == TTD_REGION_HEAP &&
           region->module != TTD_NONE && node != HEAP_NO_NODE &&
           heap_nodes_address(nodes, node) == block &&
           heap_nodes_size(nodes, node) >= LINKS + 2 * WORD && !heap_nodes_is_cleared(nodes, node);
}

enum ttd_status reach_builder_add_kept(struct reach_builder *builder)
{
    struct heap_reach *reach = builder->reach;
    const struct ttd_reference *link = &builder->link;
    if (!link->region)
        return TTD_OK;
    uint64_t word = heap_reach_region(reach, link->region)->begin + link->offset;
    enum ttd_status status = builder_add_edge(
        builder, word, link->value, heap_nodes_at(&reach->nodes, word), builder->link_target);
    builder->link.region = 0;
    return status;
}

/* Takes two links as one: neither is a pointer. A word that may be the first one is kept until the
 * next is known. */
static enum ttd_status builder_take_link(struct reach_builder *builder,
                                         const struct ttd_reference *reference, uint32_t target,
                                         bool *is_link)
{
    *is_link = true;
    if (builder->link.region == reference->region &&
        builder->link.offset + WORD == reference->offset &&
        builder->link.value == reference->value) {
        builder->link.region = 0;
        return TTD_OK;
    }
    enum ttd_status status = reach_builder_add_kept(builder);
    *is_link = builder_is_first_link(builder, reference);
    if (*is_link) {
        builder->link = *reference;
        builder->link_target = target;
    }
    return status;
}

enum ttd_status reach_builder_add(struct reach_builder *builder,
                                  const struct ttd_reference *reference, uint32_t target)
{
    struct heap_reach *reach = builder->reach;
    const struct ttd_region *region = heap_reach_region(reach, reference->region);
    uint64_t word = region->begin + reference->offset;
    bool has_address = heap_region_has_addresses(region);
    if (target == HEAP_NO_NODE)
        target = builder_find_empty_array(builder, reference->value);
    /* Most words point at nothing that lives; where they lie does not matter. */
    if (target == HEAP_NO_NODE && !reach_builder_may_be_class(builder, reference->value))
        return TTD_OK;
    uint32_t source = has_address ? builder_find_source(builder, word) : HEAP_NO_NODE;
    if (target == HEAP_NO_NODE)
        return builder_add_class_word(builder, source, word, reference->value);
    if (builder->finds_classes_only)
        return TTD_OK;
    if (builder->link.region || word - reference->value == HEADER + LINKS) {
        bool is_link;
        enum ttd_status status = builder_take_link(builder, reference, target, &is_link);
        if (status != TTD_OK || is_link)
            return status;
    }
    if (source == HEAP_NO_NODE && region->kind == TTD_REGION_HEAP && region->name != TTD_NONE)
        source = builder_find_granted(builder, word);
    if (source != HEAP_NO_NODE)
        return builder_add_edge(builder, word, reference->value, source, target);
    return region->kind == TTD_REGION_HEAP
               ? reach_between_add(builder, reference, word, target)
               : builder_add_root(builder, reference,
                                  builder_is_weak(reach, region) ? GRAPH_WEAK : 0, target);
}

enum ttd_status reach_builder_add_root(struct reach_builder *builder,
                                       const struct ttd_reference *reference, unsigned flags)
{
    struct heap_nodes *nodes = &builder->reach->nodes;
    uint32_t target = heap_nodes_at(nodes, reference->value);
    if (target == HEAP_NO_NODE)
        target = builder_find_empty_array(builder, reference->value);
    return builder_add_root(builder, reference, flags, target);
}

static int builder_compare_class_words(const void *left, const void *right)
{
    const struct reach_class_word *a = left;
    const struct reach_class_word *b = right;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

enum ttd_status reach_builder_finish(struct reach_builder *builder)
{
    if (builder->class_word_count)
        qsort(builder->class_words, builder->class_word_count, sizeof *builder->class_words,
              builder_compare_class_words);
    enum ttd_status status = builder->late_count ? reach_builder_merge_late(builder) : TTD_OK;
    if (status == TTD_OK)
        graph_finish(&builder->reach->graph);
    return status;
}

/* Edges that were put off: the graph is made anew, with each where it belongs. */

/* How often all edges are put off at most: each time all nodes are gone through. */
#define ROUNDS_MAX 4

static enum ttd_status late_edges_keep(struct reach_builder *builder,
                                       const struct reach_late_edge *edge)
{
    enum ttd_status status = grow_array((void **)&builder->late, &builder->late_capacity,
                                        builder->late_count + 1, sizeof *builder->late);
    if (status == TTD_OK)
        builder->late[builder->late_count++] = *edge;
    return status;
}

static struct reach_late_edge builder_edge_of(const struct heap_reach *reach, uint32_t source,
                                              uint64_t i)
{
    const struct edge_offsets *offsets = &reach->offsets;
    return (struct reach_late_edge){
        .source = source,
        .target = reach->graph.targets[i],
        .target_offset = edge_offset_in_target(offsets, i),
        .offset = offsets->is_without_sources ? 0 : edge_offset_in_source(offsets, i)};
}

/* Puts off the edges that were added. */
static enum ttd_status builder_put_off_all(struct reach_builder *builder)
{
    struct heap_reach *reach = builder->reach;
    struct graph *graph = &reach->graph;
    enum ttd_status status = TTD_OK;
    graph_finish(graph);
    for (uint32_t node = 0; node <= builder->source; node++) {
        for (uint64_t i = graph->first[node]; i < graph->first[node + 1] && status == TTD_OK; i++) {
            struct reach_late_edge edge = builder_edge_of(reach, node, i);
            status = late_edges_keep(builder, &edge);
        }
    }
    edge_offsets_clear(&reach->offsets, graph->edge_count);
    graph_drop_edges(graph);
    builder->late_rounds++;
    return status;
}

/* Whether more references may follow than edges were added. */
static bool builder_are_few_added(const struct reach_builder *builder)
{
    const struct heap_reach *reach = builder->reach;
    uint64_t added = reach->graph.edge_count, known = added + builder->late_count;
    return reach->snapshot.references > known && added < reach->snapshot.references - known;
}

enum ttd_status reach_builder_put_off(struct reach_builder *builder,
                                      const struct reach_late_edge *edge)
{
    if (builder->late_rounds == ROUNDS_MAX || !builder_are_few_added(builder))
        return late_edges_keep(builder, edge);
    enum ttd_status status = builder_put_off_all(builder);
    return status == TTD_OK ? reach_builder_append(builder, edge) : status;
}

static int late_edges_compare(const void *left, const void *right)
{
    const struct reach_late_edge *a = left;
    const struct reach_late_edge *b = right;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Appends the edges of a source from the graph before, and those that were put off. */
static enum ttd_status builder_append_all_of(struct reach_builder *builder,
                                             const struct heap_reach *before, uint32_t source,
                                             size_t *late)
{
    enum ttd_status status = TTD_OK;
    const struct graph *graph = &before->graph;
    for (uint64_t i = graph->first[source]; i < graph->first[source + 1] && status == TTD_OK; i++) {
        struct reach_late_edge edge = builder_edge_of(before, source, i);
        status = reach_builder_append(builder, &edge);
    }
    for (; *late < builder->late_count && builder->late[*late].source == source && status == TTD_OK;
         ++*late)
        status = reach_builder_append(builder, &builder->late[*late]);
    return status;
}

enum ttd_status reach_builder_merge_late(struct reach_builder *builder)
{
    struct heap_reach *reach = builder->reach;
    struct heap_reach before = {.graph = reach->graph, .offsets = reach->offsets};
    size_t late = 0;
    qsort(builder->late, builder->late_count, sizeof *builder->late, late_edges_compare);
    graph_finish(&before.graph);
    size_t count = (size_t)before.graph.edge_count + builder->late_count;
    reach->offsets = (struct edge_offsets){.expected = before.offsets.expected ? count : 0,
                                           .is_without_sources = before.offsets.is_without_sources};
    enum ttd_status status = graph_init(&reach->graph, reach->nodes.count);
    if (status == TTD_OK)
        status = graph_reserve_edges(&reach->graph, count);
    for (uint64_t i = 0; i < before.graph.root_count && status == TTD_OK; i++)
        status = graph_add_root(&reach->graph, before.graph.root_targets[i],
                                before.graph.root_flags[i], before.graph.root_ids[i]);
    for (uint32_t node = 0; node < reach->nodes.count && status == TTD_OK; node++)
        status = builder_append_all_of(builder, &before, node, &late);
    graph_free(&before.graph);
    edge_offsets_free(&before.offsets);
    return status;
}

#define WORD 8

/* Whether a word of heap memory outside of live blocks is no pointer to its target: it begins in a
 * block; or it points at the last word of the target, like an allocator's pointer to the free
 * memory behind it. */
static bool builder_is_no_pointer(struct reach_builder *builder, uint64_t word, uint64_t value,
                                  uint32_t target)
{
    struct heap_nodes *nodes = &builder->reach->nodes;
    return heap_nodes_at(nodes, word) != HEAP_NO_NODE ||
           (value != heap_nodes_address(nodes, target) &&
            heap_nodes_last(nodes, target) - value < WORD);
}

enum ttd_status reach_between_add(struct reach_builder *builder,
                                  const struct ttd_reference *reference, uint64_t word,
                                  uint32_t target)
{
    if (!builder->keeps_between)
        return builder_is_no_pointer(builder, word, reference->value, target)
                   ? TTD_OK
                   : reach_builder_add_root(builder, reference, GRAPH_STALE);
    enum ttd_status status = grow_array((void **)&builder->between, &builder->between_capacity,
                                        builder->between_count + 1, sizeof *builder->between);
    if (status == TTD_OK)
        builder->between[builder->between_count++] = *reference;
    return status;
}

bool reach_between_has_nodes(const struct heap_reach *reach, uint64_t first, uint64_t last)
{
    uint32_t low = 0, high = reach->nodes.count;
    SEARCH_SORTED(low, high, middle, heap_nodes_last(&reach->nodes, middle) < first);
    return low < reach->nodes.count && heap_nodes_address(&reach->nodes, low) <= last;
}

static enum ttd_status builder_list_relic(struct heap_reach *reach, uint64_t root)
{
    const struct graph *graph = &reach->graph;
    enum ttd_status status = grow_array((void **)&reach->relics, &reach->relic_capacity,
                                        reach->relic_count + 1, sizeof *reach->relics);
    if (status == TTD_OK)
        reach->relics[reach->relic_count++] =
            (struct heap_relic){graph->root_targets[root], reach->roots[graph->root_ids[root]]};
    return status;
}

enum ttd_status reach_between_settle(struct heap_reach *reach,
                                     const struct heap_reach_options *options, bool *are_changed)
{
    struct graph *graph = &reach->graph;
    uint8_t doubtful = options->tells_doubtful ? GRAPH_INTERIOR | GRAPH_STALE : GRAPH_INTERIOR;
    enum ttd_status status = TTD_OK;
    uint64_t kept = 0;
    *are_changed = false;
    for (uint64_t i = 0; i < graph->root_count && status == TTD_OK; i++) {
        uint8_t flags = graph->root_flags[i];
        *are_changed = *are_changed || flags & GRAPH_STALE;
        if (flags == REACH_ROOT_RELIC && options->lists_relics)
            status = builder_list_relic(reach, i);
        if (flags == REACH_ROOT_DROPPED || flags == REACH_ROOT_RELIC)
            continue;
        graph->root_targets[kept] = graph->root_targets[i];
        graph->root_flags[kept] = flags & GRAPH_STALE ? doubtful : flags;
        graph->root_ids[kept++] = graph->root_ids[i];
    }
    graph->root_count = kept;
    return status;
}
