/* SPDX-License-Identifier: MIT */
/* The report of `fragmentation`: regions of memory, and how much of each is live. */
#include "report/state/state_reports.h"

/* Serves a region and the sum of all regions. In the sum, the space between regions is no gap. */
static void text_region_sums(struct text_output *output, const struct heap_region *region)
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

/* Sites that text shows. */
#define SPARSE_SHOWN 5

/* Writes the sparse pages, and the call sites whose blocks keep most of them. */
static void text_sparse(struct report *report, const struct heap_sparse_pages *sparse)
{
    struct text_output *output = report->output;
    if (!sparse->sparse)
        return;
    out_bold(output);
    out_char(output, '\n');
    report_count(output, sparse->sparse, "sparse page");
    out_text(output, " of ");
    out_grouped(output, sparse->pages);
    out_text(output, ", with less than a quarter in blocks: ");
    out_size(output, sparse->total.kept);
    out_text(output, " kept by ");
    out_size(output, sparse->total.bytes);
    out_char(output, '\n');
    out_plain(output);
    for (size_t i = 0; i < report_shown(sparse->count, SPARSE_SHOWN); i++) {
        const struct heap_sparse_site *site = &sparse->sites[i];
        out_char(output, '\n');
        report_count(output, site->kept, "byte");
        out_text(output, " kept by ");
        report_count(output, site->blocks, "block");
        out_text(output, " of ");
        report_count(output, site->bytes, "byte");
        out_char(output, '\n');
        report_site_text(report, site->key);
    }
    if (sparse->count > SPARSE_SHOWN) {
        out_text(output, "\n… and ");
        report_count(output, sparse->count - SPARSE_SHOWN, "call site");
        out_text(output, " more (JSON has all)\n");
    }
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
    text_region_sums(output, &fragmentation->total);
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
        text_region_sums(output, &fragmentation->regions[i]);
    }
    if (fragmentation->count > data->limit) {
        out_text(output, "… and ");
        report_count(output, fragmentation->count - data->limit, "region");
        out_text(output, " more (--limit 0 for all)\n");
    }
    text_sparse(report, &fragmentation->sparse);
}

static void json_region_sums(struct json *json, const struct heap_region *region)
{
    json_unsigned(json, "blocks", region->blocks);
    json_unsigned(json, "used_bytes", region->used);
    json_unsigned(json, "gaps", region->gaps);
    json_unsigned(json, "gap_bytes", region->unused);
    json_unsigned(json, "largest_gap", region->largest_gap);
}

static void json_sparse(struct report *report, struct json *json,
                        const struct heap_sparse_pages *sparse)
{
    json_unsigned(json, "pages", sparse->pages);
    json_unsigned(json, "sparse_pages", sparse->sparse);
    json_unsigned(json, "kept_bytes", sparse->total.kept);
    json_begin_array(json, "keepers");
    for (size_t i = 0; i < sparse->count; i++) {
        json_begin_object(json, NULL);
        json_unsigned(json, "kept_bytes", sparse->sites[i].kept);
        json_unsigned(json, "blocks", sparse->sites[i].blocks);
        json_unsigned(json, "bytes", sparse->sites[i].bytes);
        report_site_json(report, json, sparse->sites[i].key);
        json_end_object(json);
    }
    json_end_array(json);
}

void json_fragmentation(struct report *report, const struct report_fragmentation *data)
{
    const struct heap_fragmentation *fragmentation = data->fragmentation;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_position(&json, "position", fragmentation->outcome.position);
    report_certainty_json(report, &json);
    json_region_sums(&json, &fragmentation->total);
    json_unsigned(&json, "total_regions", fragmentation->count);
    json_begin_array(&json, "regions");
    for (size_t i = 0; i < fragmentation->count && i < data->limit; i++) {
        json_begin_object(&json, NULL);
        json_hex(&json, "begin", fragmentation->regions[i].begin);
        json_hex(&json, "last", fragmentation->regions[i].last);
        json_region_sums(&json, &fragmentation->regions[i]);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_sparse(report, &json, &fragmentation->sparse);
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
