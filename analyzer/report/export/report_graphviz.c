/* SPDX-License-Identifier: MIT */
/* Graphs in the language of Graphviz: the dominator tree of the blocks, below each root the blocks
 * that only it holds; and the pointers to one block, up to the roots. */
#include "report/export/export_reports.h"

#include <stdlib.h>

#include "report/sections/say.h"

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
