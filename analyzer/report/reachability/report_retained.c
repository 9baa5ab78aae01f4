/* SPDX-License-Identifier: MIT */
/* The report of `retained` and `roots` for programs. */
#include "report/reachability/reachability_reports.h"
#include "report/sections/sections.h"

/** Whether records are groups of blocks with the same label. */
static inline bool retained_is_by_label(const struct report_retained *data)
{
    return !data->options->depth && data->options->by == HEAP_RETAINED_BY_LABEL;
}

/** Returns the key of the label of a retainer, if retained_is_by_label(). */
static inline struct heap_key retained_label(const struct heap_retainer *retainer)
{
    return (struct heap_key){TTD_NONE, retainer->index};
}

/** Returns the static name of the kind of retainers in a report, such as "block". */
static const char *retained_key_name(const struct report *report,
                                     const struct report_retained *data)
{
    static const char *const names[] = {"block", "stack", "class", "root"};
    return data->options->by == HEAP_RETAINED_BY_LABEL ? view_key_name(report->view->options.by)
                                                       : names[data->options->by];
}

/* In the dominator tree, the nodes behind the blocks are the root groups. */
static const struct heap_root_group *retained_root(const struct heap_retained *retained,
                                                   const struct heap_retainer *retainer)
{
    bool is_group =
        retainer->node != GRAPH_NONE && retainer->node >= retained->held.reach.nodes.count;
    return is_group ? &retained->held.groups[retainer->index - 1] : NULL;
}

/** Copies the block that a retainer is. Returns `copy`, or NULL if the retainer is something else.
 */
static const struct heap_block *retained_block(const struct heap_retained *retained,
                                               const struct heap_retainer *retainer,
                                               struct heap_block *copy)
{
    const struct heap_nodes *nodes = &retained->held.reach.nodes;
    if (retainer->node >= nodes->count)
        return NULL;
    *copy = heap_nodes_block(nodes, retainer->node);
    return copy;
}

/** Returns the name of the class of a retainer; size 0 if it has none. */
static struct ttd_string retained_class(struct report *report, const struct heap_retained *retained,
                                        const struct heap_retainer *retainer)
{
    const struct heap_reach *reach = &retained->held.reach;
    return retainer->index
               ? definitions_class(report->definitions, reach->classes[retainer->index - 1].name)
               : (struct ttd_string){"", 0};
}

/* Writes the subject of a record. Every record has the same members. */
static void retained_json_subject(struct row *row, const struct report_retained *data,
                                  const struct heap_retainer *retainer)
{
    const struct heap_retained *retained = data->retained;
    const struct heap_root_group *group = retained_root(retained, retainer);
    bool is_site = !data->options->depth && data->options->by == HEAP_RETAINED_BY_STACK;
    bool is_class = !data->options->depth && data->options->by == HEAP_RETAINED_BY_CLASS;
    struct heap_block copy;
    row_block(row, "block", retained_block(retained, retainer, &copy));
    if (group)
        row_place(row, "root", &group->place, false);
    else
        row_null(row, "root");
    row_name(row, "class",
             is_class ? retained_class(row->report, retained, retainer)
                      : report_node_class(row->report, &retained->held.reach, retainer->node));
    row_hex_if(row, "class_address", is_class && retainer->index,
               is_class && retainer->index
                   ? retained->held.reach.classes[retainer->index - 1].address
                   : 0);
    row_unsigned(row, "stack_id", is_site ? retainer->stack : TTD_NONE);
    row_stack(row, "stack", is_site ? retainer->stack : TTD_NONE);
}

static void retained_csv_subject(struct row *row, const struct report_retained *data,
                                 const struct heap_retainer *retainer)
{
    const struct heap_root_group *group = NULL;
    const struct heap_block *block = NULL;
    struct heap_block copy;
    bool is_list = !data->options->depth;
    if (!row->is_header) {
        group = retained_root(data->retained, retainer);
        block = retained_block(data->retained, retainer, &copy);
    }
    row_hex_if(row, "block", block, block ? block->address : 0);
    if (row_has(row, "root", group))
        row_place(row, "root", &group->place, false);
    if (row_has(row, "class", is_list && data->options->by == HEAP_RETAINED_BY_CLASS))
        row_string(row, "class", retained_class(row->report, data->retained, retainer));
    if (row_has(row, "stack", is_list && data->options->by == HEAP_RETAINED_BY_STACK))
        row_stack(row, "stack", retainer->stack);
}

static void retained_row_retainer(struct row *row, const struct report_retained *data,
                                  const struct heap_retainer *retainer)
{
    const struct heap_root_group *group =
        row->is_header ? NULL : retained_root(data->retained, retainer);
    bool is_root = group && !data->options->depth;
    if (row->is_json)
        retained_json_subject(row, data, retainer);
    row_unsigned(row, "depth", retainer->depth);
    if (row->is_json)
        row_unsigned(row, "others", retainer->others);
    row_unsigned(row, "retained_blocks", retainer->retained_blocks);
    row_unsigned(row, "retained_bytes", retainer->retained_bytes);
    row_unsigned(row, "blocks", retainer->blocks);
    row_unsigned(row, "bytes", retainer->bytes);
    row_count(row, "reachable_blocks", is_root ? retainer->reachable_blocks : TTD_UNKNOWN);
    row_count(row, "reachable_bytes", is_root ? retainer->reachable_bytes : TTD_UNKNOWN);
    if (row->is_json) {
        row_count(row, "pointers", group ? group->words : TTD_UNKNOWN);
    } else {
        row_unsigned(row, "others", retainer->others);
        retained_csv_subject(row, data, retainer);
    }
    if (retained_is_by_label(data))
        row_site(row, retained_label(retainer));
}

static void data_retained(struct report *report, const struct report_retained *data)
{
    const struct heap_retained *retained = data->retained;
    const struct heap_held *held = &retained->held;
    const struct ttd_snapshot *snapshot = &held->reach.snapshot;
    struct row row;
    row_open(&row, report);
    row_certainty(&row);
    row_snapshot(&row, "snapshot", snapshot->number ? snapshot : NULL);
    row_unsigned(&row, "total_blocks", held->blocks);
    row_unsigned(&row, "total_bytes", held->bytes);
    row_unsigned(&row, "unheld_blocks", held->unheld_blocks);
    row_unsigned(&row, "unheld_bytes", held->unheld_bytes);
    row_text(&row, "by", data->options->depth ? "tree" : retained_key_name(report, data));
    row_unsigned(&row, "total_retainers", retained->total);
    if (!row.is_json)
        report->left_out += retained->total - retained->count;
    ROW_EACH(&row, "retainers", struct heap_retainer, retainer, retained->records, retained->count)
    {
        if (!report->output->error)
            retained_row_retainer(&row, data, retainer);
    }
    row_end_object(&row);
}

/* The report of `retained` and `roots` as text. */

/* Without the name of a class, the address of its table of virtual functions still distinguishes
 * classes. */
static void text_retained_class(struct report *report, const struct heap_retained *retained,
                                const struct heap_retainer *retainer)
{
    struct ttd_string name = retained_class(report, retained, retainer);
    if (name.size) {
        report_function_text(report, name);
    } else if (retainer->index) {
        say(report->output, "table of virtual functions at ",
            hex(retained->held.reach.classes[retainer->index - 1].address));
    } else {
        out_text(report->output, "blocks without a class");
    }
}

static void text_retained_sums(struct text_output *output, const struct heap_retainer *retainer)
{
    say(output, bytes(retainer->retained_bytes), " in ", blocks(retainer->retained_blocks));
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
    say(output, "\n", BOLD);
    text_retained_sums(output, retainer);
    say(output, PLAIN, ", held by ", blocks(retainer->blocks), " of ", bytes(retainer->bytes));
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
static void retained_text_root(struct report *report, const struct report_retained *data,
                               const struct heap_retainer *retainer)
{
    const struct heap_root_group *group = retained_root(data->retained, retainer);
    struct text_output *output = report->output;
    say(output, "\n", BOLD);
    report_place_text(report, &group->place, false);
    say(output, PLAIN, "\n  alone holds ");
    text_retained_sums(output, retainer);
    say(output, "; leads to ", bytes(retainer->reachable_bytes), " in ",
        blocks(retainer->reachable_blocks), "; ", counted(group->words, "pointer"), "\n");
}

static void retained_text_branch(struct report *report, const struct report_retained *data,
                                 const struct heap_retainer *retainer)
{
    struct text_output *output = report->output;
    for (uint32_t i = 0; i < retainer->depth; i++)
        out_text(output, "  ");
    if (retainer->others) {
        say(output, "… and ", grouped(retainer->others), " more: ");
        text_retained_sums(output, retainer);
        out_char(output, '\n');
        return;
    }
    text_retained_sums(output, retainer);
    out_text(output, ": ");
    text_retained_subject(report, data, retainer);
}

static void retained_text_retainer(struct report *report, const struct report_retained *data,
                                   const struct heap_retainer *retainer)
{
    if (data->options->depth) {
        retained_text_branch(report, data, retainer);
    } else if (data->options->by == HEAP_RETAINED_BY_BLOCK) {
        out_text(report->output, "  ");
        text_retained_sums(report->output, retainer);
        out_text(report->output, ": ");
        text_retained_subject(report, data, retainer);
    } else if (data->options->by == HEAP_RETAINED_BY_ROOT) {
        retained_text_root(report, data, retainer);
    } else {
        text_retained_group(report, data, retainer);
    }
}

static void retained_text_held_totals(struct report *report, const struct heap_held *held)
{
    struct text_output *output = report->output;
    say(output, BOLD, blocks(held->blocks), ", ", sized(held->bytes), PLAIN, " by ");
    report_snapshot_text(report, &held->reach.snapshot);
    out_char(output, '\n');
    if (!held->unheld_blocks)
        return;
    say(output, blocks(held->unheld_blocks), ", ", sized(held->unheld_bytes),
        ", are held by nothing: see 'ttdanalyze leaks'\n");
}

static void text_retained(struct report *report, const struct report_retained *data)
{
    const struct heap_retained *retained = data->retained;
    if (!retained->held.reach.snapshot.number)
        report_no_snapshot_text(report);
    else
        retained_text_held_totals(report, &retained->held);
    report_certainty_text(report);
    for (size_t i = 0; i < retained->count && !report->output->error; i++)
        retained_text_retainer(report, data, &retained->records[i]);
    bool is_limited = data->options->limit != SIZE_MAX;
    if (retained->total > retained->count)
        say(report->output, "\n… and ",
            counted(retained->total - retained->count, retained_key_name(report, data)),
            is_limited ? " more (--limit 0 for all)\n" : " more\n");
}

void report_retained(struct report *report, const struct report_retained *data)
{
    if (report->form == REPORT_TEXT)
        text_retained(report, data);
    else
        data_retained(report, data);
}
