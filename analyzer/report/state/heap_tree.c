/* SPDX-License-Identifier: MIT */
/* The tree of heaps in the report of `state`. */
#include "report/state/reports.h"

/* Deeper levels are told by their number, so that no line grows with the depth. */
#define INDENTED_LEVELS 16

static void text_node(struct report *report, const struct heap_tree_node *node)
{
    struct text_output *output = report->output;
    uint32_t indented = node->level < INDENTED_LEVELS ? node->level : INDENTED_LEVELS;
    for (uint32_t i = 0; i <= indented; i++)
        out_text(output, "  ");
    report_label_text(report, &(struct view_label){.kind = LABEL_HEAP, .number = node->heap});
    if (node->level > INDENTED_LEVELS)
        out_format(output, " (level %u)", node->level);
    if (node->is_destroyed)
        out_text(output, ", destroyed");
    out_text(output, ": ");
    report_count(output, node->blocks, "block");
    out_text(output, ", ");
    report_count(output, node->bytes, "byte");
    if (node->inner_blocks) {
        out_text(output, "; in them, in heaps right below: ");
        report_count(output, node->inner_blocks, "block");
        out_text(output, ", ");
        report_count(output, node->inner_bytes, "byte");
    }
    out_char(output, '\n');
    report_call_text(report, "created", &node->created);
}

void report_heap_tree_text(struct report *report, const struct heap_tree *tree)
{
    if (tree->count)
        out_text(report->output, "\nHeaps, below those in whose blocks they lie:\n");
    uint32_t node = HEAP_TREE_NONE;
    while ((node = heap_tree_next(tree, node)) != HEAP_TREE_NONE)
        text_node(report, &tree->nodes[node]);
}

static void json_heap_tree_node(struct report *report, struct json *json,
                                const struct heap_tree *tree, const struct heap_tree_node *node)
{
    json_begin_object(json, NULL);
    report_label_json(report, json, &(struct view_label){.kind = LABEL_HEAP, .number = node->heap});
    json_unsigned(json, "parent_heap_id",
                  node->parent == HEAP_TREE_NONE ? TTD_NONE : tree->nodes[node->parent].heap);
    json_unsigned(json, "level", node->level);
    json_bool(json, "destroyed", node->is_destroyed);
    json_unsigned(json, "blocks", node->blocks);
    json_unsigned(json, "bytes", node->bytes);
    json_unsigned(json, "inner_blocks", node->inner_blocks);
    json_unsigned(json, "inner_bytes", node->inner_bytes);
    report_call_json(report, json, "created", &node->created);
    json_end_object(json);
}

void report_heap_tree_json(struct report *report, struct json *json, const struct heap_tree *tree)
{
    json_begin_array(json, "heap_tree");
    uint32_t node = HEAP_TREE_NONE;
    while ((node = heap_tree_next(tree, node)) != HEAP_TREE_NONE)
        json_heap_tree_node(report, json, tree, &tree->nodes[node]);
    json_end_array(json);
}
