/* SPDX-License-Identifier: MIT */
/* The dominator tree of the blocks as a graph in the language of Graphviz: below each root the
 * blocks that only it holds. */
#include "report/export/report_profile.h"

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

static void graphviz_write_heading(struct graphviz_writer *writer,
                                   const struct heap_retained *retained)
{
    struct report *report = writer->report;
    const struct heap_held *held = &retained->held;
    graphviz_begin_label(writer);
    escape_text(writer->label, escape_string(report->path));
    if (held->reach.snapshot.number)
        say(writer->label, ": ", blocks(held->blocks), ", ", bytes(held->bytes));
    else
        out_text(writer->label, ": no snapshot of references");
    if (held->unheld_blocks)
        say(writer->label, "; held by nothing: ", blocks(held->unheld_blocks), ", ",
            bytes(held->unheld_bytes));
    for (size_t i = 0; i < report->certainty.count; i++) {
        out_text(writer->label, "\nUncertain: ");
        escape_text(writer->label, escape_string(report->certainty.reasons[i]));
    }
    graphviz_end_label(writer);
}

void report_graphviz(struct report *report, const struct heap_retained *retained)
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
        graphviz_write_heading(writer, retained);
        out_text(report->output, ";\nrankdir=LR;\nnode [shape=box];\n");
        for (size_t i = 0; i < retained->count && !report->output->error; i++)
            graphviz_write_node(writer, retained, i);
        out_text(report->output, "}\n");
    }
    free(label);
    free(writer);
}
