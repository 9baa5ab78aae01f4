/* SPDX-License-Identifier: MIT */
#include "reach/rules.h"

#include "base/grow.h"
#include "reach/usual_offsets.h"

struct rules {
    const struct reach_builder *builder;
    struct heap_reach *reach;
    struct usual_offsets usual;
};

static uint32_t root_offset(const struct heap_reach *reach, uint64_t root)
{
    uint64_t offset = reach->roots[reach->graph.root_ids[root]].target_offset;
    return offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX;
}

static bool has_class_word(const struct rules *rules, uint32_t node, uint32_t offset)
{
    const struct reach_class_word *words = rules->builder->class_words;
    size_t low = 0, high = rules->builder->class_word_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (words[middle].node < node ||
            (words[middle].node == node && words[middle].offset < offset))
            low = middle + 1;
        else
            high = middle;
    }
    return low < rules->builder->class_word_count && words[low].node == node &&
           words[low].offset == offset;
}

/* Whether a pointer behind the start of a block owns it. */
static bool owns(const struct rules *rules, uint32_t node, uint32_t offset)
{
    const struct heap_reach *reach = rules->reach;
    const struct heap_nodes *nodes = &reach->nodes;
    if ((offset == 8 || offset == 16) && reach_is_from_new_array(nodes, node))
        return true;
    if (reach->node_classes && reach->node_classes[node] && has_class_word(rules, node, offset))
        return true;
    return usual_offsets_have(&rules->usual, nodes, node, offset);
}

static enum ttd_status list_inner(struct heap_reach *reach, uint64_t edge, uint32_t offset)
{
    enum ttd_status status = grow_array((void **)&reach->inner, &reach->inner_capacity,
                                        reach->inner_count + 1, sizeof *reach->inner);
    if (status == TTD_OK)
        reach->inner[reach->inner_count++] = (struct heap_inner_edge){edge, offset};
    return status;
}

static enum ttd_status set_flags(const struct rules *rules, bool lists_inner)
{
    struct heap_reach *reach = rules->reach;
    struct graph *graph = &reach->graph;
    enum ttd_status status = TTD_OK;
    for (uint64_t i = 0; i < graph->edge_count && status == TTD_OK; i++) {
        uint32_t offset = edge_offset_in_target(&reach->offsets, i);
        if (!offset || owns(rules, graph->targets[i], offset))
            continue;
        graph->flags[i] |= GRAPH_INTERIOR;
        if (lists_inner)
            status = list_inner(reach, i, offset);
    }
    for (uint64_t i = 0; i < graph->root_count; i++) {
        uint32_t offset = root_offset(reach, i);
        if (offset && !owns(rules, graph->root_targets[i], offset))
            graph->root_flags[i] |= GRAPH_INTERIOR;
    }
    return status;
}

/* Whether any pointer points behind the start of a block. */
static bool has_inner(const struct heap_reach *reach)
{
    for (uint64_t i = 0; i < reach->graph.edge_count; i++) {
        if (edge_offset_in_target(&reach->offsets, i))
            return true;
    }
    for (uint64_t i = 0; i < reach->graph.root_count; i++) {
        if (root_offset(reach, i))
            return true;
    }
    return false;
}

enum ttd_status reach_rules_apply(const struct reach_builder *builder,
                                  const struct heap_reach_options *options,
                                  const struct heap_stack_callers *callers)
{
    struct rules rules = {.builder = builder, .reach = builder->reach};
    if (!has_inner(builder->reach))
        return TTD_OK;
    enum ttd_status status = usual_offsets_find(&rules.usual, builder->reach, callers);
    if (status == TTD_OK)
        status = set_flags(&rules, options->lists_inner);
    usual_offsets_free(&rules.usual);
    return status;
}
