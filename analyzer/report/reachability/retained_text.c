/* SPDX-License-Identifier: MIT */
/* The report of `retained` and `roots` as text. */
#include "report/reachability/retained_parts.h"
#include "report/sections/place.h"

/* Without the name of a class, the address of its table of virtual functions still tells classes
 * apart. */
static void text_retained_class(struct report *report, const struct heap_retained *retained,
                                const struct heap_retainer *retainer)
{
    struct ttd_string name = retained_class(report, retained, retainer);
    if (name.size) {
        report_function_text(report, name);
    } else if (retainer->index) {
        out_text(report->output, "table of virtual functions at ");
        out_hex(report->output, retained->held.reach.classes[retainer->index - 1].address);
    } else {
        out_text(report->output, "blocks without a class");
    }
}

static void text_retained_sums(struct text_output *output, const struct heap_retainer *retainer)
{
    report_count(output, retainer->retained_bytes, "byte");
    out_text(output, " in ");
    report_count(output, retainer->retained_blocks, "block");
}

/* Writes the retainer itself in one line: a root group, a block, or a class. */
static void text_retained_subject(struct report *report, const struct report_retained *data,
                                  const struct heap_retainer *retainer)
{
    const struct heap_root_group *group = retained_root(data->retained, retainer);
    if (group) {
        report_place_text(report, &group->place, false);
    } else if (retainer->node < data->retained->held.reach.nodes.count) {
        out_text(report->output, "block ");
        report_node_text(report, &data->retained->held.reach, retainer->node);
    } else {
        text_retained_class(report, data->retained, retainer);
    }
    out_char(report->output, '\n');
}

/* Writes a group of blocks: its sizes, its own blocks, and its name or stack. */
static void text_retained_group(struct report *report, const struct report_retained *data,
                                const struct heap_retainer *retainer)
{
    struct text_output *output = report->output;
    out_char(output, '\n');
    out_bold(output);
    text_retained_sums(output, retainer);
    out_plain(output);
    out_text(output, ", held by ");
    report_count(output, retainer->blocks, "block");
    out_text(output, " of ");
    report_count(output, retainer->bytes, "byte");
    if (data->options->by == HEAP_RETAINED_BY_CLASS) {
        out_text(output, ": ");
        text_retained_class(report, data->retained, retainer);
        out_char(output, '\n');
        return;
    }
    out_char(output, '\n');
    if (retained_is_by_label(data))
        report_site_text(report, retained_label(retainer));
    else
        report_stack_text(report, retainer->stack);
}

/* A root group "leads to" blocks that others lead to as well, and "alone holds" the rest. A large
 * difference shows that the memory is shared. */
static void text_root(struct report *report, const struct report_retained *data,
                      const struct heap_retainer *retainer)
{
    const struct heap_root_group *group = retained_root(data->retained, retainer);
    struct text_output *output = report->output;
    out_char(output, '\n');
    out_bold(output);
    report_place_text(report, &group->place, false);
    out_plain(output);
    out_text(output, "\n  alone holds ");
    text_retained_sums(output, retainer);
    out_text(output, "; leads to ");
    report_count(output, retainer->reachable_bytes, "byte");
    out_text(output, " in ");
    report_count(output, retainer->reachable_blocks, "block");
    out_text(output, "; ");
    report_count(output, group->words, "pointer");
    out_char(output, '\n');
}

static void text_branch(struct report *report, const struct report_retained *data,
                        const struct heap_retainer *retainer)
{
    struct text_output *output = report->output;
    for (uint32_t i = 0; i < retainer->depth; i++)
        out_text(output, "  ");
    if (retainer->others) {
        out_text(output, "… and ");
        out_grouped(output, retainer->others);
        out_text(output, " more: ");
        text_retained_sums(output, retainer);
        out_char(output, '\n');
        return;
    }
    text_retained_sums(output, retainer);
    out_text(output, ": ");
    text_retained_subject(report, data, retainer);
}

static void text_retainer(struct report *report, const struct report_retained *data,
                          const struct heap_retainer *retainer)
{
    if (data->options->depth) {
        text_branch(report, data, retainer);
    } else if (data->options->by == HEAP_RETAINED_BY_BLOCK) {
        out_text(report->output, "  ");
        text_retained_sums(report->output, retainer);
        out_text(report->output, ": ");
        text_retained_subject(report, data, retainer);
    } else if (data->options->by == HEAP_RETAINED_BY_ROOT) {
        text_root(report, data, retainer);
    } else {
        text_retained_group(report, data, retainer);
    }
}

static void text_held_totals(struct report *report, const struct heap_held *held)
{
    struct text_output *output = report->output;
    out_bold(output);
    report_count(output, held->blocks, "block");
    out_text(output, ", ");
    report_count(output, held->bytes, "byte");
    out_plain(output);
    out_text(output, " by ");
    report_snapshot_text(report, &held->reach.snapshot);
    out_char(output, '\n');
    if (!held->unheld_blocks)
        return;
    report_count(output, held->unheld_blocks, "block");
    out_text(output, ", ");
    report_count(output, held->unheld_bytes, "byte");
    out_text(output, ", are held by nothing: see 'ttdanalyze leaks'\n");
}

void text_retained(struct report *report, const struct report_retained *data)
{
    const struct heap_retained *retained = data->retained;
    if (!retained->held.reach.snapshot.number)
        report_no_snapshot_text(report);
    else
        text_held_totals(report, &retained->held);
    report_certainty_text(report);
    for (size_t i = 0; i < retained->count && !report->output->error; i++)
        text_retainer(report, data, &retained->records[i]);
    bool is_limited = data->options->limit != SIZE_MAX;
    if (retained->total > retained->count) {
        out_text(report->output, "\n… and ");
        report_count(report->output, retained->total - retained->count,
                     retained_key_name(report, data));
        out_text(report->output, is_limited ? " more (--limit 0 for all)\n" : " more\n");
    }
}
