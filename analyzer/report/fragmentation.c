/* SPDX-License-Identifier: MIT */
#include "report/formats.h"

static void text_sums(struct out *output, const struct heap_region *region)
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

void text_fragmentation(struct report *to, const struct report_fragmentation *data)
{
    const struct heap_fragmentation *regions = data->regions;
    struct out *output = to->output;
    out_bold(output);
    report_count(output, regions->count, "region");
    out_text(output, " at ");
    report_position_text(to, data->outcome->position);
    out_text(output, ": ");
    text_sums(output, &regions->total);
    out_plain(output);
    report_doubts_text(to);
    if (regions->count)
        out_char(output, '\n');
    for (size_t i = 0; i < regions->count && i < data->limit; i++) {
        out_text(output, "  ");
        out_hex(output, regions->items[i].begin);
        out_text(output, " to ");
        out_hex(output, regions->items[i].last);
        out_text(output, ": ");
        text_sums(output, &regions->items[i]);
    }
    if (regions->count > data->limit) {
        out_text(output, "… and ");
        report_count(output, regions->count - data->limit, "region");
        out_text(output, " more (--limit 0 for all)\n");
    }
}

static void json_sums(struct json *writer, const struct heap_region *region)
{
    json_unsigned(writer, "blocks", region->blocks);
    json_unsigned(writer, "used_bytes", region->used);
    json_unsigned(writer, "gaps", region->gaps);
    json_unsigned(writer, "gap_bytes", region->unused);
    json_unsigned(writer, "largest_gap", region->largest_gap);
}

void json_fragmentation(struct report *to, const struct report_fragmentation *data)
{
    const struct heap_fragmentation *regions = data->regions;
    struct json writer;
    json_init(&writer, to->output, true);
    json_begin_object(&writer, NULL);
    json_position(&writer, "position", data->outcome->position);
    report_doubts_json(to, &writer);
    json_sums(&writer, &regions->total);
    json_unsigned(&writer, "total_regions", regions->count);
    json_begin_array(&writer, "regions");
    for (size_t i = 0; i < regions->count && i < data->limit; i++) {
        json_begin_object(&writer, NULL);
        json_hex(&writer, "begin", regions->items[i].begin);
        json_hex(&writer, "last", regions->items[i].last);
        json_sums(&writer, &regions->items[i]);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_end_object(&writer);
}

void csv_fragmentation(struct report *to, const struct report_fragmentation *data)
{
    struct csv writer;
    report_csv_begin(to, &writer);
    csv_header(&writer, "begin,last,blocks,used_bytes,gaps,gap_bytes,largest_gap");
    for (size_t i = 0; i < data->regions->count && i < data->limit; i++) {
        const struct heap_region *region = &data->regions->items[i];
        csv_hex(&writer, region->begin);
        csv_hex(&writer, region->last);
        csv_unsigned(&writer, region->blocks);
        csv_unsigned(&writer, region->used);
        csv_unsigned(&writer, region->gaps);
        csv_unsigned(&writer, region->unused);
        csv_unsigned(&writer, region->largest_gap);
        csv_end_row(&writer);
    }
}
