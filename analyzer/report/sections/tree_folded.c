/* SPDX-License-Identifier: MIT */
/* Trees of calls as folded stacks, for flame graphs. */
#include "report/sections/tree.h"
#include "report/writers/escape.h"
#include "view/glob.h"

static void folded_nameless_class(struct text_output *output, const struct view_label *label)
{
    if (label->number)
        out_format(output, "[class 0x%llx]", (unsigned long long)label->number);
    else
        out_text(output, "[no class]");
}

/* Writes a label in a folded stack. A frame needs a text, even without a name. */
static void folded_name(struct report *report, const struct view_label *label)
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
            folded_nameless_class(output, label);
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
        folded_name(report, view_tree_label(tree, &tree->nodes[path[--count]]));
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

void folded_tree(struct report *report, const struct report_tree *data)
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
        out_char(report->output, ' ');
        out_unsigned(report->output, node->self.weight);
        out_char(report->output, '\n');
    }
    arena_free(&arena);
}
