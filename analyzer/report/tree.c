/* SPDX-License-Identifier: MIT */
/* Trees of calls, for any command that groups by stack. */
#include <string.h>

#include "report/escape.h"
#include "report/formats.h"
#include "report/tree.h"
#include "view/glob.h"

/* Columns of the text: where each ends, and how much of a tree's breadth is shown. */
#define END_BYTES   16
#define END_PERCENT 25
#define END_COUNT   37
#define INDENT_MAX  64

void report_tree_number(struct out *output, const char *sign, uint64_t value, size_t end)
{
    size_t digits = 1;
    for (uint64_t rest = value; rest >= 10; rest /= 10)
        digits++;
    digits += (digits - 1) / 3 + strlen(sign);
    out_tab(output, end > digits ? end - digits : 0);
    out_text(output, sign);
    out_grouped(output, value);
}

void report_tree_heading(struct out *output, const char *name, size_t end)
{
    size_t size = strlen(name);
    out_tab(output, end > size ? end - size : 0);
    out_text(output, name);
}

static void text_percent(struct out *output, uint64_t part, uint64_t all)
{
    double percent = all ? (double)part * 100 / (double)all : 0;
    out_tab(output,
            percent < 99.95 ? percent < 9.95 ? END_PERCENT - 4 : END_PERCENT - 5 : END_PERCENT - 6);
    out_format(output, "%.1f%%", percent);
}

static void text_amount(struct out *output, const struct heap_amount *amount, uint64_t all)
{
    report_tree_number(output, "", amount->bytes, END_BYTES);
    text_percent(output, amount->weight, all);
    report_tree_number(output, "", amount->count, END_COUNT);
}

static void text_header(struct out *output, const char *unit)
{
    size_t size = strlen(unit) + 1;
    out_dim(output);
    report_tree_heading(output, "bytes", END_BYTES);
    report_tree_heading(output, "%", END_PERCENT);
    out_tab(output, END_COUNT > size ? END_COUNT - size : 0);
    out_text(output, unit);
    out_text(output, "s");
    out_plain(output);
    out_char(output, '\n');
}

void report_tree_name(struct report *to, const struct view_tree *tree, const struct view_node *node,
                      size_t limit)
{
    struct out *output = to->output;
    out_text(output, "  ");
    for (uint32_t i = 1; i < node->branches && i < INDENT_MAX; i++)
        out_text(output, "  ");
    /* What begins a branch stands out: what comes below it as far to the right is called by it. */
    if (node->branches)
        out_text(output, node->branches > tree->nodes[node->parent].branches ? "- " : "  ");
    report_label_text(to, view_tree_label(tree, node));
    if (node->count > limit) {
        out_text(output, " (");
        out_grouped(output, limit);
        out_text(output, " of ");
        out_grouped(output, node->count);
        out_text(output, " shown)");
    }
    out_char(output, '\n');
}

void report_tree_more(struct report *to, const struct view_tree *tree, size_t limit)
{
    const struct view_node *all = &tree->nodes[0];
    if (all->count > limit) {
        out_text(to->output, "… and ");
        out_grouped(to->output, all->count - limit);
        out_text(to->output, " more (--limit 0 for all)\n");
    }
}

void text_tree(struct report *to, const struct report_tree *data)
{
    struct out *output = to->output;
    const struct view_node *all = &data->tree->nodes[0];
    size_t limit = data->options->limit;
    out_bold(output);
    out_text(output, "All: ");
    report_count(output, all->all.bytes, "byte");
    out_text(output, " in ");
    report_count(output, all->all.count, data->unit);
    out_plain(output);
    if (all->count && strcmp(data->weight, "bytes") != 0)
        out_format(output, "; %% is of %s", data->weight);
    out_char(output, '\n');
    report_runtime_text(to);
    report_known_text(to, REPORT_BLOCKS);
    report_doubts_text(to);
    if (!all->count)
        return;
    out_char(output, '\n');
    text_header(output, data->unit);
    for (uint32_t i = 0; (i = view_tree_next(data->tree, i, limit)) != VIEW_NO_NODE;) {
        text_amount(output, &data->tree->nodes[i].all, all->all.weight);
        report_tree_name(to, data->tree, &data->tree->nodes[i], limit);
    }
    report_tree_more(to, data->tree, limit);
    report_runtime_groups_text(to, limit, false);
}

static void json_amount(struct json *writer, const struct view_node *node)
{
    json_unsigned(writer, "weight", node->all.weight);
    json_unsigned(writer, "self_weight", node->self.weight);
    json_unsigned(writer, "bytes", node->all.bytes);
    json_unsigned(writer, "self_bytes", node->self.bytes);
    json_unsigned(writer, "count", node->all.count);
    json_unsigned(writer, "self_count", node->self.count);
}

void report_tree_json(struct json *writer, const struct view_options *options)
{
    json_text(writer, "tree", options->shape == VIEW_TOP_DOWN ? "top-down" : "bottom-up");
    json_text(writer, "by", view_key_name(options->by));
}

void json_tree(struct report *to, const struct report_tree *data)
{
    const struct heap_amount *all = &data->tree->nodes[0].all;
    struct json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    report_doubts_json(to, &writer);
    report_tree_json(&writer, data->options);
    json_text(&writer, "weight_of", data->weight);
    json_text(&writer, "count_of", data->unit);
    json_unsigned(&writer, "total_weight", all->weight);
    json_unsigned(&writer, "total_bytes", all->bytes);
    json_unsigned(&writer, "total_count", all->count);
    json_unsigned(&writer, "total_nodes", data->tree->linked);
    report_runtime_json(&to->runtime, &writer);
    report_known_json(to, &writer, REPORT_BLOCKS);
    json_begin_array(&writer, "nodes");
    for (uint32_t i = 0;
         (i = view_tree_next(data->tree, i, data->options->limit)) != VIEW_NO_NODE;) {
        const struct view_node *node = &data->tree->nodes[i];
        const struct view_label *name = view_tree_label(data->tree, node);
        json_begin_object(&writer, NULL);
        json_unsigned(&writer, "depth", node->depth);
        json_amount(&writer, node);
        report_label_json(to, &writer, name);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_end_object(&writer);
}

static const char *kind_name(enum label_kind kind)
{
    static const char *const names[] = {"none", "function", "file", "module", "thread", "heap"};
    return names[kind];
}

void report_tree_csv(struct report *to, struct csv *writer, const struct view_label *name)
{
    csv_text(writer, kind_name(name->kind));
    csv_string(writer, report_label_name(to, name));
    csv_string(writer, name->module);
    if (name->kind == LABEL_FUNCTION && name->number)
        csv_hex(writer, name->number);
    else if (name->kind == LABEL_THREAD || name->kind == LABEL_HEAP)
        csv_unsigned(writer, name->number);
    else
        csv_empty(writer);
}

void csv_tree(struct report *to, const struct report_tree *data)
{
    struct csv writer;
    report_csv_begin(to, &writer);
    csv_header(&writer,
               "depth,weight,self_weight,bytes,self_bytes,count,self_count," REPORT_TREE_FIELDS);
    for (uint32_t i = 0;
         (i = view_tree_next(data->tree, i, data->options->limit)) != VIEW_NO_NODE;) {
        const struct view_node *node = &data->tree->nodes[i];
        csv_unsigned(&writer, node->depth);
        csv_unsigned(&writer, node->all.weight);
        csv_unsigned(&writer, node->self.weight);
        csv_unsigned(&writer, node->all.bytes);
        csv_unsigned(&writer, node->self.bytes);
        csv_unsigned(&writer, node->all.count);
        csv_unsigned(&writer, node->self.count);
        report_tree_csv(to, &writer, view_tree_label(data->tree, node));
        csv_end_row(&writer);
    }
}

static void folded_name(struct report *to, const struct view_label *name)
{
    struct out *output = to->output;
    struct ttd_string text = report_label_name(to, name);
    struct ttd_string module = glob_base_name(name->module);
    switch (name->kind) {
    case LABEL_NONE:
        out_text(output, "[no stack]");
        return;
    case LABEL_MODULE:
        text = glob_base_name(text);
        break;
    case LABEL_THREAD:
    case LABEL_HEAP:
        out_format(output, "%s %u ", kind_name(name->kind), (unsigned)name->number);
        break;
    case LABEL_FUNCTION:
    case LABEL_FILE:
        break;
    }
    escape_folded(output, text);
    if (text.size || name->kind == LABEL_THREAD || name->kind == LABEL_HEAP)
        return;
    escape_folded(output, module);
    if (name->kind == LABEL_FUNCTION && (module.size || name->number))
        out_format(output, "%s0x%llx", module.size ? "+" : "", (unsigned long long)name->number);
    else if (!module.size)
        out_text(output, "[unknown]");
}

void report_tree_path(struct report *to, const struct view_tree *tree, uint32_t node,
                      uint32_t *path)
{
    size_t count = 0;
    if (to->output->error)
        return;
    for (; node; node = tree->nodes[node].parent)
        path[count++] = node;
    while (count > 0) {
        folded_name(to, view_tree_label(tree, &tree->nodes[path[--count]]));
        if (count)
            out_char(to->output, ';');
    }
}

uint32_t *report_tree_path_room(struct report *to, const struct view_tree *tree,
                                struct arena *memory)
{
    size_t deepest = 0;
    for (size_t i = 1; i < tree->count; i++) {
        if (tree->nodes[i].depth > deepest)
            deepest = tree->nodes[i].depth;
    }
    uint32_t *path = arena_take(memory, (deepest + 1) * sizeof *path);
    if (!path)
        to->status = TTD_ERROR_NO_MEMORY;
    return path;
}

void folded_tree(struct report *to, const struct report_tree *data)
{
    struct arena memory = {0};
    uint32_t *path = report_tree_path_room(to, data->tree, &memory);
    for (uint32_t i = 0; path && (i = view_tree_next(data->tree, i, SIZE_MAX)) != VIEW_NO_NODE;) {
        const struct view_node *node = &data->tree->nodes[i];
        if (!node->self.weight)
            continue;
        report_folded_begin(to->output, !to->doubts.count);
        if (data->root)
            out_format(to->output, "%s;", data->root);
        report_tree_path(to, data->tree, i, path);
        out_char(to->output, ' ');
        out_unsigned(to->output, node->self.weight);
        out_char(to->output, '\n');
    }
    arena_free(&memory);
}
