/* SPDX-License-Identifier: MIT */
/* The report of `fragmentation`: regions of memory, and how much of each is live. */
#include "report/state/reports.h"

/* Serves a region and the sum of all regions. In the sum, the space between regions is no gap. */
static void text_sums(struct text_output *output, const struct heap_region *region)
{
    report_count(output, region->used, "byte");
    out_text(output, " in ");
    report_count(output, region->blocks, "block");
    out_text(output, "; ");
    report_count(output, region->unused, "byte");
    out_text(output, " in ");
    report_count(output, region->gaps, "gap");
    if (region->gaps) {
        out_text(output, ", the largest of ");
        out_grouped(output, region->largest_gap);
    }
    out_char(output, '\n');
}

void text_fragmentation(struct report *report, const struct report_fragmentation *data)
{
    const struct heap_fragmentation *fragmentation = data->fragmentation;
    struct text_output *output = report->output;
    out_bold(output);
    report_count(output, fragmentation->count, "region");
    out_text(output, " at ");
    report_position_text(report, fragmentation->outcome.position);
    out_text(output, ": ");
    text_sums(output, &fragmentation->total);
    out_plain(output);
    report_certainty_text(report);
    if (fragmentation->count)
        out_char(output, '\n');
    for (size_t i = 0; i < fragmentation->count && i < data->limit; i++) {
        out_text(output, "  ");
        out_hex(output, fragmentation->regions[i].begin);
        out_text(output, " to ");
        out_hex(output, fragmentation->regions[i].last);
        out_text(output, ": ");
        text_sums(output, &fragmentation->regions[i]);
    }
    if (fragmentation->count > data->limit) {
        out_text(output, "… and ");
        report_count(output, fragmentation->count - data->limit, "region");
        out_text(output, " more (--limit 0 for all)\n");
    }
}

static void json_sums(struct json *json, const struct heap_region *region)
{
    json_unsigned(json, "blocks", region->blocks);
    json_unsigned(json, "used_bytes", region->used);
    json_unsigned(json, "gaps", region->gaps);
    json_unsigned(json, "gap_bytes", region->unused);
    json_unsigned(json, "largest_gap", region->largest_gap);
}

void json_fragmentation(struct report *report, const struct report_fragmentation *data)
{
    const struct heap_fragmentation *fragmentation = data->fragmentation;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_position(&json, "position", fragmentation->outcome.position);
    report_certainty_json(report, &json);
    json_sums(&json, &fragmentation->total);
    json_unsigned(&json, "total_regions", fragmentation->count);
    json_begin_array(&json, "regions");
    for (size_t i = 0; i < fragmentation->count && i < data->limit; i++) {
        json_begin_object(&json, NULL);
        json_hex(&json, "begin", fragmentation->regions[i].begin);
        json_hex(&json, "last", fragmentation->regions[i].last);
        json_sums(&json, &fragmentation->regions[i]);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
}

void csv_fragmentation(struct report *report, const struct report_fragmentation *data)
{
    struct csv csv;
    report_csv_begin(report, &csv);
    csv_header(&csv, "begin,last,blocks,used_bytes,gaps,gap_bytes,largest_gap");
    size_t count = report_listed(report, data->fragmentation->count, data->limit);
    for (size_t i = 0; i < count; i++) {
        const struct heap_region *region = &data->fragmentation->regions[i];
        csv_hex(&csv, region->begin);
        csv_hex(&csv, region->last);
        csv_unsigned(&csv, region->blocks);
        csv_unsigned(&csv, region->used);
        csv_unsigned(&csv, region->gaps);
        csv_unsigned(&csv, region->unused);
        csv_unsigned(&csv, region->largest_gap);
        csv_end_row(&csv);
    }
}
