/* SPDX-License-Identifier: MIT */
/* Trees of calls of one heap, for all commands that group by stack. */

#include <string.h>

#include "report/sections/sections.h"
#include "report/writers/out.h"
#include "view/function_names.h"

/* Columns where the numbers of the text end, and the limit of indentation. */
#define END_BYTES   16
#define END_PERCENT 25
#define END_COUNT   37
#define INDENT_MAX  64

void report_tree_number(struct text_output *output, const char *sign, uint64_t value, size_t end)
{
    /* Numbers end at a column, so their width comes first: digits, and a comma for each three. */
    size_t digits = 1;
    for (uint64_t remaining = value; remaining >= 10; remaining /= 10)
        digits++;
    digits += (digits - 1) / 3 + strlen(sign);
    say(output, tab(end > digits ? end - digits : 0), sign, grouped(value));
}

void report_tree_heading(struct text_output *output, const char *name, size_t end)
{
    size_t size = strlen(name);
    say(output, tab(end > size ? end - size : 0), name);
}

static void tree_text_percent(struct text_output *output, uint64_t part, uint64_t total)
{
    /* The rounded number decides the width: 9.95 is written as 10.0. */
    double percent = total ? (double)part * 100 / (double)total : 0;
    out_tab(output,
            percent < 99.95 ? percent < 9.95 ? END_PERCENT - 4 : END_PERCENT - 5 : END_PERCENT - 6);
    out_format(output, "%.1f%%", percent);
}

static void text_tree_header(struct text_output *output, const char *unit)
{
    size_t size = strlen(unit) + 1;
    out_dim(output);
    report_tree_heading(output, "bytes", END_BYTES);
    report_tree_heading(output, "%", END_PERCENT);
    say(output, tab(END_COUNT > size ? END_COUNT - size : 0), unit, "s", PLAIN, "\n");
}

void report_tree_name(struct report *report, const struct view_tree *tree,
                      const struct view_node *node, size_t limit)
{
    struct text_output *output = report->output;
    out_text(output, "  ");
    for (uint32_t i = 1; i < node->branches && i < INDENT_MAX; i++)
        out_text(output, "  ");
    /* A dash marks the first node of a branch. The nodes below it with the same indentation are its
     * only callees, one of the other. */
    if (node->branches)
        out_text(output, node->branches > tree->nodes[node->parent].branches ? "- " : "  ");
    report_label_text(report, view_tree_label(tree, node));
    if (node->count > limit)
        say(output, " (", grouped(limit), " of ", grouped(node->count), " shown)");
    out_char(output, '\n');
}

void report_tree_more(struct report *report, const struct view_tree *tree, size_t limit)
{
    const struct view_node *root = &tree->nodes[0];
    if (root->count > limit)
        say(report->output, "… and ", grouped(root->count - limit), " more (--limit 0 for all)\n");
}

static void text_tree(struct report *report, const struct report_tree *data)
{
    struct text_output *output = report->output;
    const struct view_node *root = &data->tree->nodes[0];
    size_t limit = data->options->limit;
    say(output, BOLD, "All: ", sized(root->total.bytes), " in ",
        counted(root->total.count, data->unit), PLAIN);
    /* Percentages are of the weight; no column shows it if it is not bytes. */
    if (root->count && strcmp(data->weight, "bytes") != 0)
        out_format(output, "; %% is of %s", data->weight);
    out_char(output, '\n');
    report_runtime_text(report);
    report_known_findings_text(report, REPORT_BLOCKS);
    report_certainty_text(report);
    if (!root->count)
        return;
    out_char(output, '\n');
    text_tree_header(output, data->unit);
    for (uint32_t i = 0; (i = view_tree_next(data->tree, i, limit)) != VIEW_NO_NODE;) {
        const struct heap_amount *amount = &data->tree->nodes[i].total;
        report_tree_number(output, "", amount->bytes, END_BYTES);
        tree_text_percent(output, amount->weight, root->total.weight);
        report_tree_number(output, "", amount->count, END_COUNT);
        report_tree_name(report, data->tree, &data->tree->nodes[i], limit);
    }
    report_tree_more(report, data->tree, limit);
    report_runtime_groups_text(report, false);
}

void row_tree(struct row *row, const struct view_options *options)
{
    row_text(row, "tree", options->shape == VIEW_TOP_DOWN ? "top-down" : "bottom-up");
    row_text(row, "by", view_key_name(options->by));
}

const char *report_tree_kind(enum label_kind kind)
{
    static const char *const names[] = {"none",   "function", "file", "module",
                                        "thread", "heap",     "class"};
    return names[kind];
}

void row_tree_label(struct row *row, const struct view_tree *tree, uint32_t node)
{
    static const struct view_label no_label = {.kind = LABEL_NONE};
    const struct view_label *label =
        row->is_header ? &no_label : view_tree_label(tree, &tree->nodes[node]);
    if (row->is_json) {
        row_label(row, label);
        return;
    }
    row_text(row, "kind", report_tree_kind(label->kind));
    row_string(row, "name", report_label_name(row->report, label));
    row_string(row, "module", label->module);
    if ((label->kind == LABEL_FUNCTION || label->kind == LABEL_CLASS) && label->number)
        row_hex(row, "number", label->number);
    else
        row_unsigned_if(row, "number", label->kind == LABEL_THREAD || label->kind == LABEL_HEAP,
                        label->number);
}

static void row_tree_node(struct row *row, const struct view_tree *tree, uint32_t number)
{
    const struct view_node *node = &tree->nodes[number];
    row_unsigned(row, "depth", node->depth);
    row_unsigned(row, "weight", node->total.weight);
    row_unsigned(row, "self_weight", node->self.weight);
    row_unsigned(row, "bytes", node->total.bytes);
    row_unsigned(row, "self_bytes", node->self.bytes);
    row_unsigned(row, "count", node->total.count);
    row_unsigned(row, "self_count", node->self.count);
    row_tree_label(row, tree, number);
}

void row_tree_nodes(struct row *row, const struct view_tree *tree, row_tree_visitor *visit)
{
    size_t limit = row->report->limit, rows = 0;
    /* A flat list with depths: stacks may be deeper than parsers of JSON allow objects to be. */
    row_begin_array(row, "nodes");
    if (row_begin_header(row)) {
        visit(row, tree, 0);
        row_end_record(row);
    }
    for (uint32_t i = 0; (i = view_tree_next(tree, i, limit)) != VIEW_NO_NODE; rows++) {
        row_begin_record(row);
        visit(row, tree, i);
        row_end_record(row);
    }
    row_end_array(row);
    if (!row->is_json)
        row->report->left_out += tree->linked - rows;
}

static void data_tree(struct report *report, const struct report_tree *data)
{
    const struct heap_amount *total = &data->tree->nodes[0].total;
    struct row row;
    row_open(&row, report);
    row_certainty(&row);
    row_tree(&row, data->options);
    row_text(&row, "weight_of", data->weight);
    row_text(&row, "count_of", data->unit);
    row_unsigned(&row, "total_weight", total->weight);
    row_unsigned(&row, "total_bytes", total->bytes);
    row_unsigned(&row, "total_count", total->count);
    row_unsigned(&row, "total_nodes", data->tree->linked);
    row_runtime(&row, &report->runtime);
    row_known_findings(&row, REPORT_BLOCKS);
    row_tree_nodes(&row, data->tree, row_tree_node);
    row_end_object(&row);
}

/* Trees of calls as folded stacks, for flame graphs. */

void report_folded_label(struct report *report, const struct view_label *label)
{
    struct text_output *output = report->output;
    struct ttd_string text = report_label_name(report, label);
    struct ttd_string module = glob_base_name(label->module);
    switch (label->kind) {
    case LABEL_NONE:
        out_text(output, "[no stack]");
        return;
    case LABEL_MODULE:
        text = glob_base_name(text);
        break;
    case LABEL_THREAD:
    case LABEL_HEAP:
        out_format(output, "%s %u ", report_tree_kind(label->kind), (unsigned)label->number);
        break;
    case LABEL_CLASS:
        if (!text.size) {
            if (label->number)
                out_format(output, "[class 0x%llx]", (unsigned long long)label->number);
            else
                out_text(output, "[no class]");
            return;
        }
        break;
    case LABEL_FUNCTION:
    case LABEL_FILE:
        break;
    }
    escape_folded(output, text);
    if (text.size || label->kind == LABEL_THREAD || label->kind == LABEL_HEAP)
        return;
    escape_folded(output, module);
    if (label->kind == LABEL_FUNCTION && (module.size || label->number))
        out_format(output, "%s0x%llx", module.size ? "+" : "", (unsigned long long)label->number);
    else if (!module.size)
        out_text(output, "[unknown]");
}

/* Links lead from a node to its parent, but a folded stack begins at the root. So the path is
 * collected first, in an array and not by recursion: a trace may have stacks of any depth. */
void report_tree_path(struct report *report, const struct view_tree *tree, uint32_t node,
                      uint32_t *path)
{
    size_t count = 0;
    if (report->output->error)
        return;
    for (; node; node = tree->nodes[node].parent)
        path[count++] = node;
    while (count > 0) {
        report_folded_label(report, view_tree_label(tree, &tree->nodes[path[--count]]));
        if (count)
            out_char(report->output, ';');
    }
}

uint32_t *report_tree_path_room(struct report *report, const struct view_tree *tree,
                                struct arena *arena)
{
    size_t deepest = 0;
    for (size_t i = 1; i < tree->count; i++) {
        if (tree->nodes[i].depth > deepest)
            deepest = tree->nodes[i].depth;
    }
    uint32_t *path = arena_take(arena, (deepest + 1) * sizeof *path);
    if (!path)
        report->status = TTD_ERROR_NO_MEMORY;
    return path;
}

static void folded_tree(struct report *report, const struct report_tree *data)
{
    struct arena arena = {0};
    uint32_t *path = report_tree_path_room(report, data->tree, &arena);
    for (uint32_t i = 0; path && (i = view_tree_next(data->tree, i, SIZE_MAX)) != VIEW_NO_NODE;) {
        const struct view_node *node = &data->tree->nodes[i];
        /* A reader of folded stacks adds up the weights below a frame itself. */
        if (!node->self.weight)
            continue;
        report_folded_begin(report->output, !report->certainty.count);
        if (data->root)
            out_format(report->output, "%s;", data->root);
        report_tree_path(report, data->tree, i, path);
        say(report->output, " ", number(node->self.weight), "\n");
    }
    arena_free(&arena);
}

void report_tree(struct report *report, const struct report_tree *data)
{
    if (report->form == REPORT_TEXT)
        text_tree(report, data);
    else if (report->form == REPORT_FOLDED)
        folded_tree(report, data);
    else
        data_tree(report, data);
}
