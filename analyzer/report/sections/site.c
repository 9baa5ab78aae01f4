/* SPDX-License-Identifier: MIT */
/* Sites of records: a stack, or the label that records are grouped by. */
#include <string.h>

#include "report/sections/sections.h"
#include "report/writers/out.h"
#include "view/function_names.h"

static bool site_is_by_stack(const struct report *report)
{
    return report->view->options.by == VIEW_BY_STACK;
}

struct ttd_string report_label_name(const struct report *report, const struct view_label *label)
{
    if (label->kind == LABEL_THREAD) {
        const struct definition_thread *thread =
            definitions_thread(report->definitions, (ttd_id)label->number);
        return definitions_text(report->definitions, thread ? thread->name : TTD_NONE);
    }
    if (label->kind == LABEL_HEAP) {
        const struct definition_heap *heap =
            definitions_heap(report->definitions, (ttd_id)label->number);
        return definitions_text(report->definitions, heap ? heap->name : TTD_NONE);
    }
    return label->name;
}

/* A function without a name is identified by module and offset, as tools that look it up take them.
 */
static void site_text_function(struct report *report, const struct view_label *label)
{
    struct text_output *output = report->output;
    struct ttd_string module = glob_base_name(label->module);
    if (label->name.size) {
        size_t place = output->column + (module.size ? module.size + strlen(" in ") : 0);
        size_t room =
            output->width > place + REPORT_FUNCTION_MIN ? output->width - place : SIZE_MAX;
        report_function_cut(report, label->name, output->width ? room : SIZE_MAX);
        if (module.size)
            out_text(output, " in ");
        escape_text(output, module);
        return;
    }
    if (!module.size && !label->number) {
        out_text(output, "(in no module)");
        return;
    }
    escape_text(output, module);
    if (module.size)
        out_char(output, '+');
    out_hex(output, label->number);
}

/* A heap without a name is identified by its handle, as the program saw it. */
static void site_text_owner(struct report *report, const char *kind, const struct view_label *label)
{
    struct ttd_string text = report_label_name(report, label);
    out_format(report->output, "%s %u ", kind, (unsigned)label->number);
    if (text.size)
        escape_text(report->output, text);
    else if (label->kind == LABEL_HEAP &&
             definitions_heap(report->definitions, (ttd_id)label->number))
        out_hex(report->output,
                definitions_heap_handle(report->definitions, (ttd_id)label->number));
}

static void text_site_class(struct report *report, const struct view_label *label)
{
    if (label->name.size) {
        report_function_text(report, label->name);
    } else if (label->number) {
        say(report->output, "table of virtual functions at ", hex(label->number));
    } else {
        out_text(report->output, "(no class is known)");
    }
}

void report_label_text(struct report *report, const struct view_label *label)
{
    struct text_output *output = report->output;
    switch (label->kind) {
    case LABEL_NONE:
        out_text(output, "(no stack was recorded)");
        break;
    case LABEL_FUNCTION:
        site_text_function(report, label);
        break;
    case LABEL_FILE:
        if (label->name.size) {
            escape_text(output, label->name);
            break;
        }
        say(output, label->module.size ? "(no file is known) in " : "(no file is known)",
            glob_base_name(label->module));
        break;
    case LABEL_MODULE:
        if (label->name.size)
            escape_text(output, label->name);
        else
            out_text(output, "(in no module)");
        break;
    case LABEL_THREAD:
        site_text_owner(report, "thread", label);
        break;
    case LABEL_HEAP:
        site_text_owner(report, "heap", label);
        break;
    case LABEL_CLASS:
        text_site_class(report, label);
        break;
    }
}

/* All labels of a kind have the same members: an unknown one is null. */
void row_label(struct row *row, const struct view_label *label)
{
    const struct report *report = row->report;
    switch (label->kind) {
    case LABEL_NONE:
    case LABEL_FUNCTION:
        row_name(row, "function", label->name);
        row_name(row, "module", label->module);
        row_hex_if(row, "offset", label->number, label->number);
        break;
    case LABEL_FILE:
        row_name(row, "file", label->name);
        row_name(row, "module", label->module);
        break;
    case LABEL_MODULE:
        row_name(row, "module", label->name);
        break;
    case LABEL_THREAD:
        row_unsigned(row, "thread", label->number);
        row_name(row, "name", report_label_name(report, label));
        break;
    case LABEL_HEAP:
        row_unsigned(row, "heap_id", label->number);
        row_hex(row, "heap", definitions_heap_handle(report->definitions, (ttd_id)label->number));
        row_name(row, "name", report_label_name(report, label));
        break;
    case LABEL_CLASS:
        row_name(row, "class_name", label->name);
        row_hex_if(row, "class_address", label->number, label->number);
        break;
    }
}

void report_site_text(struct report *report, struct heap_key key)
{
    if (site_is_by_stack(report)) {
        report_stack_text(report, key.stack);
        return;
    }
    out_text(report->output, "    ");
    report_label_text(report, view_find_label(report->view, key));
    out_char(report->output, '\n');
}

/* Returns the label of a record. A group without frames, and a header, get an empty label of the
 * kind that all groups have, so that they have the same members. */
static struct view_label site_label_of(const struct row *row, struct heap_key key)
{
    static const enum label_kind kinds[] = {LABEL_NONE,   LABEL_FUNCTION, LABEL_FILE, LABEL_MODULE,
                                            LABEL_THREAD, LABEL_HEAP,     LABEL_CLASS};
    const struct view *view = row->report->view;
    struct view_label label = {.kind = LABEL_NONE};
    if (!row->is_header)
        label = *view_find_label(view, key);
    if (label.kind == LABEL_NONE)
        label = (struct view_label){.kind = kinds[view->options.by]};
    return label;
}

void row_site(struct row *row, struct heap_key key)
{
    if (site_is_by_stack(row->report)) {
        row_unsigned(row, "stack_id", key.stack);
        row_stack(row, "stack", key.stack);
        return;
    }
    struct view_label label = site_label_of(row, key);
    row_label(row, &label);
}

static void site_count(struct report *report, size_t count)
{
    report_count(report->output, count, view_key_name(report->view->options.by));
}

/* The one group of a trace without stacks is no place in the program. */
void report_from_sites(struct report *report, const struct heap_groups *groups)
{
    if (groups->count == 1 && groups->items[0].key.stack == TTD_NONE &&
        report->view->options.by == VIEW_BY_STACK) {
        out_text(report->output, ", without recorded stacks");
        return;
    }
    out_text(report->output, ", from ");
    site_count(report, groups->count);
}

void report_site_more(struct report *report, size_t count)
{
    if (!count)
        return;
    out_text(report->output, "\n… and ");
    site_count(report, count);
    out_text(report->output, " more (--limit 0 for all)\n");
}
