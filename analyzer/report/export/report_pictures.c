/* SPDX-License-Identifier: MIT */
/* Pictures: graphs in the language of Graphviz, and flame graphs as SVG. */
#include "report/export/export_reports.h"

#include <stdlib.h>

#include "report/sections/say.h"
#include "report/sections/sections.h"
#include "view/function_names.h"

/* Graphs of Graphviz: the dominator tree of the blocks, below each root the blocks that only it
 * holds; and the pointers to one block, up to the roots. */

/* Bytes of a label, at most. */
#define GRAPHVIZ_LABEL_MAX 1024

/** The text of a label, which is written in two steps: by the functions of text reports, then
 * escaped for a string of Graphviz. */
struct graphviz_writer {
    struct report *report;
    struct text_output *output;
    struct text_output *label;
    /** The nodes above the next one, by level. */
    size_t above[HEAP_RETAINED_DEPTH_MAX + 1];
};

/* Lets the reports write the label. */
static void graphviz_begin_label(struct graphviz_writer *writer)
{
    out_init(writer->label, -1, false);
    writer->report->output = writer->label;
}

/* Writes the label as a string. Graphviz knows escape sequences and the entities of HTML. */
static void graphviz_end_label(struct graphviz_writer *writer)
{
    struct text_output *output = writer->output;
    const struct text_output *label = writer->label;
    size_t size = label->used < GRAPHVIZ_LABEL_MAX ? label->used : GRAPHVIZ_LABEL_MAX;
    /* No part of a character is left. */
    while (size < label->used && size && ((unsigned char)label->buffer[size] & 0xC0) == 0x80)
        size--;
    writer->report->output = output;
    out_char(output, '"');
    for (size_t i = 0; i < size; i++) {
        char c = label->buffer[i];
        if (c == '"' || c == '\\')
            out_char(output, '\\');
        if (c == '\n')
            out_text(output, "\\n");
        else if (c == '&')
            out_text(output, "&amp;");
        else
            out_char(output, c);
    }
    out_text(output, size < label->used || label->error ? "…\"" : "\"");
}

/* Writes the name of a node: a place that holds blocks, or a block, with its sums. */
static void graphviz_write_label(struct graphviz_writer *writer,
                                 const struct heap_retained *retained,
                                 const struct heap_retainer *retainer)
{
    const struct heap_held *held = &retained->held;
    graphviz_begin_label(writer);
    if (retainer->others)
        say(writer->label, grouped(retainer->others), " more");
    else if (retainer->node < held->reach.nodes.count)
        report_node_text(writer->report, &held->reach, retainer->node);
    else
        report_place_text(writer->report, &held->groups[retainer->index - 1].place, false);
    say(writer->label, "\nretains ", bytes(retainer->retained_bytes), " in ",
        blocks(retainer->retained_blocks));
    graphviz_end_label(writer);
}

static void graphviz_write_node(struct graphviz_writer *writer,
                                const struct heap_retained *retained, size_t index)
{
    const struct heap_retainer *retainer = &retained->records[index];
    bool is_block = retainer->node < retained->held.reach.nodes.count;
    say(writer->output, "n", number(index), " [label=");
    graphviz_write_label(writer, retained, retainer);
    say(writer->output, retainer->others ? ",style=dashed" : is_block ? "" : ",style=bold", "];\n");
    writer->above[retainer->depth] = index;
    if (retainer->depth)
        say(writer->output, "n", number(writer->above[retainer->depth - 1]), " -> n", number(index),
            ";\n");
}

static void graphviz_begin_heading(struct graphviz_writer *writer)
{
    graphviz_begin_label(writer);
    escape_text(writer->label, escape_string(writer->report->path));
}

static void graphviz_end_heading(struct graphviz_writer *writer)
{
    const struct certainty *certainty = &writer->report->certainty;
    for (size_t i = 0; i < certainty->count; i++) {
        out_text(writer->label, "\nUncertain: ");
        escape_text(writer->label, escape_string(certainty->reasons[i]));
    }
    graphviz_end_label(writer);
}

static void graphviz_write_heading(struct graphviz_writer *writer,
                                   const struct heap_retained *retained)
{
    const struct heap_held *held = &retained->held;
    graphviz_begin_heading(writer);
    if (held->reach.snapshot.number)
        say(writer->label, ": ", blocks(held->blocks), ", ", bytes(held->bytes));
    else
        out_text(writer->label, ": no snapshot of references");
    if (held->unheld_blocks)
        say(writer->label, "; held by nothing: ", blocks(held->unheld_blocks), ", ",
            bytes(held->unheld_bytes));
    graphviz_end_heading(writer);
}

static void graphviz_write_tree(struct graphviz_writer *writer,
                                const struct heap_retained *retained)
{
    graphviz_write_heading(writer, retained);
    out_text(writer->output, ";\nrankdir=LR;\nnode [shape=box];\n");
    for (size_t i = 0; i < retained->count && !writer->output->error; i++)
        graphviz_write_node(writer, retained, i);
}

/* Pointers to a block. A block is a node by its number, once; each other line has one of its own.
 */

static void graphviz_write_block(struct graphviz_writer *writer,
                                 const struct heap_referrers *referrers, uint32_t node)
{
    say(writer->output, "b", number(node), " [label=");
    graphviz_begin_label(writer);
    report_node_text(writer->report, &referrers->reach, node);
    graphviz_end_label(writer);
    out_text(writer->output, node == referrers->target ? ",style=bold];\n" : "];\n");
}

/* Writes the node of a line that is no block: a place, or more than one block. */
static void graphviz_write_line(struct graphviz_writer *writer,
                                const struct heap_referrers *referrers, size_t index)
{
    const struct heap_referrer *line = &referrers->lines[index];
    struct heap_place place = heap_place_of(&referrers->places, line->region, line->offset);
    say(writer->output, "n", number(index),
        " [style=", line->kind == HEAP_REFERRER_ROOT ? "bold" : "dashed", ",label=");
    graphviz_begin_label(writer);
    if (line->kind == HEAP_REFERRER_MORE)
        say(writer->label, counted(line->count, "pointer"), " more");
    else if (line->kind == HEAP_REFERRER_CHAIN)
        say(writer->label, blocks(line->count), " like it");
    else if (line->kind == HEAP_REFERRER_RELIC)
        out_text(writer->label, "released memory");
    else
        report_place_text(writer->report, &place, true);
    graphviz_end_label(writer);
    out_text(writer->output, "];\n");
}

static void graphviz_write_referrer(struct graphviz_writer *writer,
                                    const struct heap_referrers *referrers, size_t index)
{
    const struct heap_referrer *line = &referrers->lines[index];
    struct text_output *output = writer->output;
    bool has_block = line->kind == HEAP_REFERRER_BLOCK || line->kind == HEAP_REFERRER_CHAIN;
    uint32_t target = line->depth ? (uint32_t)writer->above[line->depth - 1] : referrers->target;
    if (has_block) {
        writer->above[line->depth] = line->node;
        if (!line->is_repeated)
            graphviz_write_block(writer, referrers, line->node);
    }
    if (line->kind != HEAP_REFERRER_BLOCK) {
        graphviz_write_line(writer, referrers, index);
        say(output, "n", number(index), " -> b", number(target));
    }
    if (line->kind == HEAP_REFERRER_CHAIN)
        say(output, ";\nb", number(line->node), " -> n", number(index));
    else if (line->kind == HEAP_REFERRER_BLOCK)
        say(output, "b", number(line->node), " -> b", number(target));
    out_text(output, line->flags & GRAPH_STALE ? " [style=dashed];\n" : ";\n");
}

static void graphviz_write_referrers(struct graphviz_writer *writer,
                                     const struct heap_referrers *referrers, uint64_t address)
{
    graphviz_begin_heading(writer);
    say(writer->label, ": pointers to ", hex(address));
    if (!referrers->reach.snapshot.number)
        out_text(writer->label, ": no snapshot of references");
    else if (referrers->target == GRAPH_NONE)
        out_text(writer->label, ", which is in no block that was live");
    else if (referrers->distance == GRAPH_NONE)
        out_text(writer->label, "; nothing leads to it");
    graphviz_end_heading(writer);
    out_text(writer->output, ";\nrankdir=LR;\nnode [shape=box];\n");
    if (referrers->target != GRAPH_NONE)
        graphviz_write_block(writer, referrers, referrers->target);
    for (size_t i = 0; i < referrers->count && !writer->output->error; i++)
        graphviz_write_referrer(writer, referrers, i);
}

void report_graphviz(struct report *report, const struct report_graph *graph)
{
    struct graphviz_writer *writer = calloc(1, sizeof *writer);
    struct text_output *label = malloc(sizeof *label);
    if (!writer || !label) {
        report->status = TTD_ERROR_NO_MEMORY;
    } else {
        writer->report = report;
        writer->output = report->output;
        writer->label = label;
        out_text(report->output, "digraph {\nlabelloc=t;\nlabel=");
        if (graph->retained)
            graphviz_write_tree(writer, graph->retained);
        else
            graphviz_write_referrers(writer, graph->referrers, graph->address);
        out_text(report->output, "}\n");
    }
    free(label);
    free(writer);
}

/* A flame graph as SVG: a rectangle for each node of a tree of calls, below its caller's, as wide
 * as its share of the bytes. It needs no script: the texts of rectangles are clipped by the
 * viewer, and the titles that it shows are elements. */

/* In pixels: the graph's width and margin, the height of a line, the width of the narrowest
 * rectangle, and of the narrowest one with a text. */
#define FLAME_WIDTH  1200.0
#define FLAME_MARGIN 10
#define FLAME_LINE   18
#define FLAME_LEAST  0.1
#define FLAME_TEXT   24.0

/* Nodes farther from the root are not drawn. */
#define FLAME_LEVELS 1000

/* Longer names are cut, so that the size of the file has a limit. */
#define FLAME_NAME_MAX 1024

/** A node's rectangle: its left edge and width, and the left edge of its next callee. */
struct flame_box {
    double left;
    double width;
    double next;
};

struct flame {
    struct report *report;
    const struct report_profile *data;
    /** By node of the tree. */
    struct flame_box *boxes;
    uint32_t levels;
    size_t left_out;
};

/* Places all rectangles. A width of 0 is of one that is not drawn; so none above it is. */
static void flame_place(struct flame *flame)
{
    const struct view_tree *tree = flame->data->tree;
    const double total = (double)tree->nodes[0].total.weight;
    flame->boxes[0] = (struct flame_box){.width = FLAME_WIDTH};
    for (uint32_t i = 0; (i = view_tree_next(tree, i, SIZE_MAX)) != VIEW_NO_NODE;) {
        const struct view_node *node = &tree->nodes[i];
        struct flame_box *parent = &flame->boxes[node->parent];
        double width = total > 0 ? (double)node->total.weight / total * FLAME_WIDTH : 0;
        /* Sums that were too large are smaller than their parts. */
        if (parent->next + width > FLAME_WIDTH)
            width = FLAME_WIDTH - parent->next;
        bool is_drawn = parent->width > 0 && width >= FLAME_LEAST && node->depth < FLAME_LEVELS;
        flame->boxes[i] = (struct flame_box){parent->next, is_drawn ? width : 0, parent->next};
        parent->next += width > 0 ? width : 0;
        if (!is_drawn)
            flame->left_out++;
        else if (node->depth + 1 > flame->levels)
            flame->levels = node->depth + 1;
    }
}

static struct ttd_string flame_cut(struct ttd_string text)
{
    if (text.size > FLAME_NAME_MAX)
        text.size = FLAME_NAME_MAX;
    return text;
}

static void flame_write_name(struct flame *flame, const struct view_label *label)
{
    struct text_output *output = flame->report->output;
    struct ttd_string name = flame_cut(report_label_name(flame->report, label));
    struct ttd_string module = flame_cut(glob_base_name(label->module));
    if (label->kind == LABEL_NONE) {
        out_text(output, "[no stack]");
    } else if (name.size) {
        escape_xml(output, name);
    } else {
        escape_xml(output, module);
        if (module.size || label->number)
            say(output, module.size ? "+" : "", hex(label->number));
        else
            out_text(output, "[unknown]");
    }
}

static void flame_write_amount(struct flame *flame, const struct heap_amount *amount)
{
    const struct heap_amount *total = &flame->data->tree->nodes[0].total;
    say(flame->report->output, bytes(amount->bytes), " in ", blocks(amount->count));
    if (amount != total && total->weight)
        out_format(flame->report->output, " (%.2f %%)",
                   (double)amount->weight * 100 / (double)total->weight);
}

/* A colour of the palette by the number of the label: a function has the same in all places. */
static void flame_write_color(struct text_output *output, uint32_t label)
{
    uint32_t mixed = label * UINT32_C(2654435761);
    out_format(output, "rgb(%u,%u,%u)", 205 + (mixed >> 24) % 50, 90 + (mixed >> 16) % 130,
               (mixed >> 8) % 80);
}

/* An SVG in the SVG clips its text to its own size. */
static void flame_draw(struct flame *flame, uint32_t index, uint32_t top)
{
    struct text_output *output = flame->report->output;
    const struct view_node *node = &flame->data->tree->nodes[index];
    const struct flame_box *box = &flame->boxes[index];
    uint32_t y = top + (index ? node->depth + 1 : 0) * FLAME_LINE;
    out_format(output, "<svg x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\"><title>",
               FLAME_MARGIN + box->left, (unsigned)y, box->width, FLAME_LINE - 1);
    if (index)
        flame_write_name(flame, view_tree_label(flame->data->tree, node));
    else
        out_text(output, "all");
    out_text(output, ": ");
    flame_write_amount(flame, &node->total);
    out_text(output, "</title><rect width=\"100%\" height=\"100%\" rx=\"2\" fill=\"");
    flame_write_color(output, index ? node->label + 1 : 0);
    out_text(output, "\"/>");
    if (box->width >= FLAME_TEXT) {
        out_text(output, "<text x=\"3\" y=\"13\">");
        if (index)
            flame_write_name(flame, view_tree_label(flame->data->tree, node));
        else
            out_text(output, "all");
        out_text(output, "</text>");
    }
    out_text(output, "</svg>\n");
}

/* Writes a line of text at the top; returns the baseline of the next one. */
static uint32_t flame_begin_line(struct flame *flame, uint32_t baseline, const char *class)
{
    out_format(flame->report->output, "<text x=\"%d\" y=\"%u\"%s>", FLAME_MARGIN,
               (unsigned)baseline, class);
    return baseline + FLAME_LINE;
}

static void flame_write_heading(struct flame *flame)
{
    struct text_output *output = flame->report->output;
    const struct certainty *certainty = &flame->report->certainty;
    uint32_t baseline = flame_begin_line(flame, 20, " class=\"title\"");
    escape_xml(output, escape_string(flame->report->path));
    say(output, ", ", report_measure_words(flame->data->measure), ": ");
    flame_write_amount(flame, &flame->data->tree->nodes[0].total);
    out_text(output, "</text>\n");
    for (size_t i = 0; i < certainty->count; i++) {
        baseline = flame_begin_line(flame, baseline, " class=\"alarm\"");
        out_text(output, "Uncertain: ");
        escape_xml(output, escape_string(certainty->reasons[i]));
        out_text(output, "</text>\n");
    }
    if (!flame->left_out)
        return;
    flame_begin_line(flame, baseline, "");
    say(output, counted(flame->left_out, "rectangle"), " not drawn: narrower than ");
    out_format(output, "%g pixels, or farther than %d calls from the start</text>\n", FLAME_LEAST,
               FLAME_LEVELS);
}

static void flame_write(struct flame *flame)
{
    struct text_output *output = flame->report->output;
    const struct view_tree *tree = flame->data->tree;
    uint32_t lines = 2 + (uint32_t)flame->report->certainty.count + (flame->left_out ? 1 : 0);
    uint32_t top = lines * FLAME_LINE;
    unsigned width = (unsigned)FLAME_WIDTH + 2 * FLAME_MARGIN;
    unsigned height = top + (flame->levels + 1) * FLAME_LINE + FLAME_MARGIN;
    out_format(output,
               "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
               "viewBox=\"0 0 %u %u\">\n",
               width, height, width, height);
    out_text(output, "<style>text{font:12px sans-serif}.title{font-weight:bold}.alarm{fill:#b00}"
                     "svg:hover>rect{stroke:#000}</style>\n"
                     "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    flame_write_heading(flame);
    flame_draw(flame, 0, top);
    for (uint32_t i = 0; (i = view_tree_next(tree, i, SIZE_MAX)) != VIEW_NO_NODE;) {
        if (flame->boxes[i].width > 0)
            flame_draw(flame, i, top);
    }
    out_text(output, "</svg>\n");
}

void report_profile_svg(struct report *report, const struct report_profile *data)
{
    struct flame flame = {.report = report, .data = data};
    flame.boxes = calloc(data->tree->count, sizeof *flame.boxes);
    if (!flame.boxes) {
        report->status = TTD_ERROR_NO_MEMORY;
        return;
    }
    flame_place(&flame);
    flame_write(&flame);
    free(flame.boxes);
}
