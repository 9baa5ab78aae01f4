/* SPDX-License-Identifier: MIT */
/* Trees of calls of the difference of two heaps. */
#include "report/sections/tree.h"
#include "report/state/compare.h"
#include "report/state/reports.h"

/* Columns at which the numbers of the text end. */
#define END_CHANGE 16
#define END_BLOCKS 27
#define END_OLD    43
#define END_NEW    59

/* Amounts of a node, by heap. */
struct node_sides {
    uint64_t bytes[HEAP_SIDES];
    uint64_t blocks[HEAP_SIDES];
};

static struct node_sides sides_of(const struct heap_amount *old, const struct heap_amount *new)
{
    return (struct node_sides){{old->bytes, new->bytes}, {old->count, new->count}};
}

static struct node_sides compare_tree_total(const struct view_tree *tree, uint32_t node)
{
    return sides_of(&tree->old[node].total, &tree->nodes[node].total);
}

static struct node_sides self_of(const struct view_tree *tree, uint32_t node)
{
    return sides_of(&tree->old[node].self, &tree->nodes[node].self);
}

/* ---- Text ---- */

static void text_compare_tree_signed(struct text_output *output, const uint64_t amounts[HEAP_SIDES],
                                     size_t end)
{
    bool has_shrunk = amounts[HEAP_OLD] > amounts[HEAP_NEW];
    uint64_t distance =
        has_shrunk ? amounts[HEAP_OLD] - amounts[HEAP_NEW] : amounts[HEAP_NEW] - amounts[HEAP_OLD];
    report_tree_number(output, has_shrunk ? "-" : "+", distance, end);
}

static void text_compare_tree_header(struct text_output *output)
{
    out_dim(output);
    report_tree_heading(output, "change", END_CHANGE);
    report_tree_heading(output, "blocks", END_BLOCKS);
    report_tree_heading(output, "old bytes", END_OLD);
    report_tree_heading(output, "new bytes", END_NEW);
    out_plain(output);
    out_char(output, '\n');
}

void text_compare_tree(struct report *report, const struct report_compare *data)
{
    const struct view_tree *tree = data->tree;
    struct text_output *output = report->output;
    text_compare_sums(report, data);
    out_char(output, '\n');
    text_compare_runtime(report, data);
    text_compare_certainty(report, data);
    if (!tree->linked)
        return;
    out_char(output, '\n');
    text_compare_tree_header(output);
    for (uint32_t i = 0; (i = view_tree_next(tree, i, data->limit)) != VIEW_NO_NODE;) {
        struct node_sides total = compare_tree_total(tree, i);
        text_compare_tree_signed(output, total.bytes, END_CHANGE);
        text_compare_tree_signed(output, total.blocks, END_BLOCKS);
        report_tree_number(output, "", total.bytes[HEAP_OLD], END_OLD);
        report_tree_number(output, "", total.bytes[HEAP_NEW], END_NEW);
        report_tree_name(report, tree, &tree->nodes[i], data->limit);
    }
    report_tree_more(report, tree, data->limit);
}

/* ---- JSON ---- */

static void json_compare_tree_node(struct report *report, struct json *json,
                                   const struct view_tree *tree, uint32_t node)
{
    struct node_sides total = compare_tree_total(tree, node);
    struct node_sides self = self_of(tree, node);
    json_begin_object(json, NULL);
    json_unsigned(json, "depth", tree->nodes[node].depth);
    json_difference(json, "change_blocks", total.blocks[HEAP_OLD], total.blocks[HEAP_NEW]);
    json_difference(json, "change_bytes", total.bytes[HEAP_OLD], total.bytes[HEAP_NEW]);
    json_unsigned(json, "old_blocks", total.blocks[HEAP_OLD]);
    json_unsigned(json, "old_bytes", total.bytes[HEAP_OLD]);
    json_unsigned(json, "new_blocks", total.blocks[HEAP_NEW]);
    json_unsigned(json, "new_bytes", total.bytes[HEAP_NEW]);
    json_unsigned(json, "old_self_blocks", self.blocks[HEAP_OLD]);
    json_unsigned(json, "old_self_bytes", self.bytes[HEAP_OLD]);
    json_unsigned(json, "new_self_blocks", self.blocks[HEAP_NEW]);
    json_unsigned(json, "new_self_bytes", self.bytes[HEAP_NEW]);
    report_label_json(report, json, view_tree_label(tree, &tree->nodes[node]));
    json_end_object(json);
}

void json_compare_tree(struct report *report, struct json *json, const struct report_compare *data)
{
    const struct view_tree *tree = data->tree;
    report_tree_json(json, &report->view->options);
    json_unsigned(json, "total_nodes", tree->linked);
    json_begin_array(json, "nodes");
    for (uint32_t i = 0; (i = view_tree_next(tree, i, data->limit)) != VIEW_NO_NODE;)
        json_compare_tree_node(report, json, tree, i);
    json_end_array(json);
}

/* ---- CSV ---- */

void csv_compare_tree(struct report *report, const struct report_compare *data)
{
    const struct view_tree *tree = data->tree;
    struct csv csv;
    report_csv_begin(report, &csv);
    csv.is_certain = report_compare_is_certain(data);
    csv_header(&csv, "depth,change_blocks,change_bytes,old_blocks,old_bytes,new_blocks,"
                     "new_bytes,old_self_blocks,old_self_bytes,new_self_blocks,"
                     "new_self_bytes," REPORT_TREE_FIELDS);
    size_t rows = 0;
    for (uint32_t i = 0; (i = view_tree_next(tree, i, data->limit)) != VIEW_NO_NODE;) {
        struct node_sides total = compare_tree_total(tree, i);
        struct node_sides self = self_of(tree, i);
        rows++;
        csv_unsigned(&csv, tree->nodes[i].depth);
        csv_difference(&csv, total.blocks[HEAP_OLD], total.blocks[HEAP_NEW]);
        csv_difference(&csv, total.bytes[HEAP_OLD], total.bytes[HEAP_NEW]);
        csv_unsigned(&csv, total.blocks[HEAP_OLD]);
        csv_unsigned(&csv, total.bytes[HEAP_OLD]);
        csv_unsigned(&csv, total.blocks[HEAP_NEW]);
        csv_unsigned(&csv, total.bytes[HEAP_NEW]);
        csv_unsigned(&csv, self.blocks[HEAP_OLD]);
        csv_unsigned(&csv, self.bytes[HEAP_OLD]);
        csv_unsigned(&csv, self.blocks[HEAP_NEW]);
        csv_unsigned(&csv, self.bytes[HEAP_NEW]);
        report_tree_csv(report, &csv, view_tree_label(tree, &tree->nodes[i]));
        csv_end_row(&csv);
    }
    report->left_out += tree->linked - rows;
}

/* ---- Folded stacks ---- */

/* Writes bytes of the old heap and of the new one for each stack. Unchanged stacks are included, as
 * the base of a differential flame graph. */
void folded_compare(struct report *report, const struct report_compare *data)
{
    const struct view_tree *tree = data->tree;
    struct arena arena = {0};
    uint32_t *path = report_tree_path_room(report, tree, &arena);
    for (uint32_t i = 0; path && (i = view_tree_next(tree, i, SIZE_MAX)) != VIEW_NO_NODE;) {
        struct node_sides self = self_of(tree, i);
        if (!self.bytes[HEAP_OLD] && !self.bytes[HEAP_NEW])
            continue;
        report_folded_begin(report->output, report_compare_is_certain(data));
        report_tree_path(report, tree, i, path);
        for (int side = 0; side < HEAP_SIDES; side++) {
            out_char(report->output, ' ');
            out_unsigned(report->output, self.bytes[side]);
        }
        out_char(report->output, '\n');
    }
    arena_free(&arena);
}
