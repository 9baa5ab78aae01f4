/* SPDX-License-Identifier: MIT */
/* The report of `index`: the index that was made. */
#include "report/trace/reports.h"
#include "report/writers/escape.h"

void text_index(struct report *report, const struct report_index *data)
{
    escape_text(report->output, escape_string(data->file));
    out_text(report->output, ": ");
    report_count(report->output, data->keyframes, "keyframe");
    if (data->summaries) {
        out_text(report->output, " and ");
        out_grouped(report->output, data->summaries);
        out_text(report->output, data->summaries == 1 ? " summary" : " summaries");
    }
    out_text(report->output, " of ");
    report_count(report->output, data->events, "event");
    out_text(report->output, ", ");
    report_count(report->output, data->bytes, "byte");
    out_char(report->output, '\n');
}

void json_index(struct report *report, const struct report_index *data)
{
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_text(&json, "index", data->file);
    json_unsigned(&json, "keyframes", data->keyframes);
    json_unsigned(&json, "summaries", data->summaries);
    json_unsigned(&json, "events", data->events);
    json_unsigned(&json, "index_bytes", data->bytes);
    json_end_object(&json);
}

void csv_index(struct report *report, const struct report_index *data)
{
    struct csv csv;
    csv_init(&csv, report->output);
    csv_header(&csv, "index,keyframes,summaries,events,index_bytes");
    csv_text(&csv, data->file);
    csv_unsigned(&csv, data->keyframes);
    csv_unsigned(&csv, data->summaries);
    csv_unsigned(&csv, data->events);
    csv_unsigned(&csv, data->bytes);
    csv_end_row(&csv);
}
