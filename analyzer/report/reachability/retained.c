/* SPDX-License-Identifier: MIT */
/* The report of `retained` and `roots`. */
#include "report/reachability/reports.h"
#include "report/sections/place.h"

static const char *const key_names[] = {"block", "site", "class", "root"};

/* The root that a record is of; NULL if it is of none. */
static const struct heap_root_group *group_of(const struct heap_retained *retained,
                                              const struct heap_retainer *item)
{
    bool is_group = item->node != GRAPH_NONE && item->node >= retained->held.reach.nodes.count;
    return is_group ? &retained->held.groups[item->index - 1] : NULL;
}

static const struct heap_block *block_of(const struct heap_retained *retained,
                                         const struct heap_retainer *item)
{
    const struct heap_nodes *nodes = &retained->held.reach.nodes;
    return item->node < nodes->count ? &nodes->blocks[item->node] : NULL;
}

/* The name of the class that a record is of; size 0 if it has none. */
static struct ttd_string class_of(struct report *report, const struct heap_retained *retained,
                                  const struct heap_retainer *item)
{
    const struct heap_reach *reach = &retained->held.reach;
    return item->index
               ? definitions_class(report->definitions, reach->classes[item->index - 1].name)
               : (struct ttd_string){"", 0};
}

static void text_class(struct report *report, const struct heap_retained *retained,
                       const struct heap_retainer *item)
{
    struct ttd_string name = class_of(report, retained, item);
    if (name.size) {
        report_function_text(report, name);
    } else if (item->index) {
        out_text(report->output, "table of virtual functions at ");
        out_hex(report->output, retained->held.reach.classes[item->index - 1].address);
    } else {
        out_text(report->output, "blocks without a class");
    }
}

static void text_sums(struct out *output, const struct heap_retainer *item)
{
    report_count(output, item->retained_bytes, "byte");
    out_text(output, " in ");
    report_count(output, item->retained_blocks, "block");
}

/* Writes what a record is of, in one line. */
static void text_subject(struct report *report, const struct report_retained *data,
                         const struct heap_retainer *item)
{
    const struct heap_root_group *group = group_of(data->retained, item);
    const struct heap_block *block = block_of(data->retained, item);
    if (group) {
        report_place_text(report, &group->place, false);
    } else if (block) {
        out_text(report->output, "block ");
        report_node_text(report, &data->retained->held.reach, item->node);
    } else {
        text_class(report, data->retained, item);
    }
    out_char(report->output, '\n');
}

/* A group of blocks: those that it consists of, and its name or stack. */
static void text_group(struct report *report, const struct report_retained *data,
                       const struct heap_retainer *item)
{
    struct out *output = report->output;
    out_char(output, '\n');
    out_bold(output);
    text_sums(output, item);
    out_plain(output);
    out_text(output, ", held by ");
    report_count(output, item->blocks, "block");
    out_text(output, " of ");
    report_count(output, item->bytes, "byte");
    if (data->options->by == HEAP_RETAINED_BY_CLASS) {
        out_text(output, ": ");
        text_class(report, data->retained, item);
        out_char(output, '\n');
        return;
    }
    out_char(output, '\n');
    report_stack_text(report, item->stack);
}

static void text_root(struct report *report, const struct report_retained *data,
                      const struct heap_retainer *item)
{
    const struct heap_root_group *group = group_of(data->retained, item);
    struct out *output = report->output;
    out_char(output, '\n');
    out_bold(output);
    report_place_text(report, &group->place, false);
    out_plain(output);
    out_text(output, "\n  alone holds ");
    text_sums(output, item);
    out_text(output, "; leads to ");
    report_count(output, item->reachable_bytes, "byte");
    out_text(output, " in ");
    report_count(output, item->reachable_blocks, "block");
    out_text(output, "; ");
    report_count(output, group->words, "pointer");
    out_char(output, '\n');
}

static void text_branch(struct report *report, const struct report_retained *data,
                        const struct heap_retainer *item)
{
    struct out *output = report->output;
    for (uint32_t i = 0; i < item->depth; i++)
        out_text(output, "  ");
    if (item->others) {
        out_text(output, "… and ");
        out_grouped(output, item->others);
        out_text(output, " more: ");
        text_sums(output, item);
        out_char(output, '\n');
        return;
    }
    text_sums(output, item);
    out_text(output, ": ");
    text_subject(report, data, item);
}

static void text_item(struct report *report, const struct report_retained *data,
                      const struct heap_retainer *item)
{
    if (data->options->depth) {
        text_branch(report, data, item);
    } else if (data->options->by == HEAP_RETAINED_BY_BLOCK) {
        out_text(report->output, "  ");
        text_sums(report->output, item);
        out_text(report->output, ": ");
        text_subject(report, data, item);
    } else if (data->options->by == HEAP_RETAINED_BY_ROOT) {
        text_root(report, data, item);
    } else {
        text_group(report, data, item);
    }
}

static void text_totals(struct report *report, const struct heap_held *held)
{
    struct out *output = report->output;
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
        text_totals(report, &retained->held);
    report_certainty_text(report);
    for (size_t i = 0; i < retained->count && !report->output->error; i++)
        text_item(report, data, &retained->items[i]);
    if (retained->total > retained->count) {
        out_text(report->output, "\n… and ");
        report_count(report->output, retained->total - retained->count,
                     key_names[data->options->by]);
        out_text(report->output, " more (--limit 0 for all)\n");
    }
}

/* Writes what a record is of. Every record has the same members. */
static void json_subject(struct report *report, struct json *json,
                         const struct report_retained *data, const struct heap_retainer *item)
{
    const struct heap_retained *retained = data->retained;
    const struct heap_root_group *group = group_of(retained, item);
    bool is_site = !data->options->depth && data->options->by == HEAP_RETAINED_BY_SITE;
    bool is_class = !data->options->depth && data->options->by == HEAP_RETAINED_BY_CLASS;
    report_block_json(report, json, "block", block_of(retained, item));
    if (group)
        report_place_json(report, json, "root", &group->place, false);
    else
        json_null(json, "root");
    json_name(json, "class",
              is_class ? class_of(report, retained, item)
                       : report_node_class(report, &retained->held.reach, item->node));
    json_hex_if(json, "class_address", is_class && item->index,
                is_class && item->index ? retained->held.reach.classes[item->index - 1].address
                                        : 0);
    json_unsigned(json, "stack_id", is_site ? item->stack : TTD_NONE);
    report_stack_json(report, json, "stack", is_site ? item->stack : TTD_NONE);
}

static void json_item(struct report *report, struct json *json, const struct report_retained *data,
                      const struct heap_retainer *item)
{
    const struct heap_root_group *group = group_of(data->retained, item);
    bool is_root = group && !data->options->depth;
    json_begin_object(json, NULL);
    json_subject(report, json, data, item);
    json_unsigned(json, "depth", item->depth);
    json_unsigned(json, "others", item->others);
    json_unsigned(json, "retained_blocks", item->retained_blocks);
    json_unsigned(json, "retained_bytes", item->retained_bytes);
    json_unsigned(json, "blocks", item->blocks);
    json_unsigned(json, "bytes", item->bytes);
    json_count(json, "reachable_blocks", is_root ? item->reachable_blocks : TTD_UNKNOWN);
    json_count(json, "reachable_bytes", is_root ? item->reachable_bytes : TTD_UNKNOWN);
    json_count(json, "pointers", group ? group->words : TTD_UNKNOWN);
    json_end_object(json);
}

void json_retained(struct report *report, const struct report_retained *data)
{
    const struct heap_retained *retained = data->retained;
    const struct heap_held *held = &retained->held;
    const struct ttd_snapshot *snapshot = &held->reach.snapshot;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    report_certainty_json(report, &json);
    report_snapshot_json(&json, "snapshot", snapshot->number ? snapshot : NULL);
    json_unsigned(&json, "total_blocks", held->blocks);
    json_unsigned(&json, "total_bytes", held->bytes);
    json_unsigned(&json, "unheld_blocks", held->unheld_blocks);
    json_unsigned(&json, "unheld_bytes", held->unheld_bytes);
    json_text(&json, "by", data->options->depth ? "tree" : key_names[data->options->by]);
    json_unsigned(&json, "total_retainers", retained->total);
    json_begin_array(&json, "retainers");
    for (size_t i = 0; i < retained->count && !report->output->error; i++)
        json_item(report, &json, data, &retained->items[i]);
    json_end_array(&json);
    json_end_object(&json);
}

static void csv_subject(struct report *report, struct csv *csv, const struct report_retained *data,
                        const struct heap_retainer *item)
{
    const struct heap_root_group *group = group_of(data->retained, item);
    const struct heap_block *block = block_of(data->retained, item);
    bool is_list = !data->options->depth;
    csv_hex_if(csv, block, block ? block->address : 0);
    if (group)
        report_place_csv(report, csv, &group->place, false);
    else
        csv_empty(csv);
    if (is_list && data->options->by == HEAP_RETAINED_BY_CLASS)
        csv_string(csv, class_of(report, data->retained, item));
    else
        csv_empty(csv);
    if (is_list && data->options->by == HEAP_RETAINED_BY_SITE)
        report_stack_csv(report, csv, item->stack);
    else
        csv_empty(csv);
}

void csv_retained(struct report *report, const struct report_retained *data)
{
    const struct heap_retained *retained = data->retained;
    struct csv csv;
    report_csv_begin(report, &csv);
    csv_header(&csv, "depth,retained_blocks,retained_bytes,blocks,bytes,reachable_blocks,"
                     "reachable_bytes,others,block,root,class,stack");
    for (size_t i = 0; i < retained->count && !report->output->error; i++) {
        const struct heap_retainer *item = &retained->items[i];
        bool is_root = group_of(retained, item) && !data->options->depth;
        csv_unsigned(&csv, item->depth);
        csv_unsigned(&csv, item->retained_blocks);
        csv_unsigned(&csv, item->retained_bytes);
        csv_unsigned(&csv, item->blocks);
        csv_unsigned(&csv, item->bytes);
        csv_unsigned_if(&csv, is_root, item->reachable_blocks);
        csv_unsigned_if(&csv, is_root, item->reachable_bytes);
        csv_unsigned(&csv, item->others);
        csv_subject(report, &csv, data, item);
        csv_end_row(&csv);
    }
}
