/* SPDX-License-Identifier: MIT */
/* The report of `redact`. */
#include "report/trace/reports.h"

#include "report/writers/escape.h"

void text_redact(struct report *report, const struct report_redaction *data)
{
    const struct ttd_redaction *removed = data->removed;
    struct text_output *output = report->output;
    escape_text(output, escape_string(data->result));
    out_text(output, ": removed ");
    report_count(output, removed->page_bytes, "byte");
    out_text(output, " of memory in ");
    report_count(output, removed->memory_snapshots, "snapshot");
    if (removed->registers) {
        out_text(output, ", ");
        report_count(output, removed->registers, "register");
    }
    if (removed->unknown_chunks) {
        out_text(output, ", ");
        report_count(output, removed->unknown_chunks, "chunk");
        out_text(output, " of unknown kind");
    }
    if (data->has_strings) {
        out_text(output, "; strings are still there (--strings removes them)\n");
        return;
    }
    out_text(output, ", ");
    report_count(output, removed->strings, "string");
    out_text(output, ", ");
    report_count(output, removed->metadata, "metadata record");
    out_text(output, ", ");
    report_count(output, removed->build_ids, "build-id");
    out_text(output, ", data of ");
    report_count(output, removed->user_events, "user event");
    out_char(output, '\n');
}

void json_redact(struct report *report, const struct report_redaction *data)
{
    const struct ttd_redaction *removed = data->removed;
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_text(&json, "result", data->result);
    json_bool(&json, "has_strings", data->has_strings);
    json_unsigned(&json, "page_bytes", removed->page_bytes);
    json_unsigned(&json, "memory_snapshots", removed->memory_snapshots);
    json_unsigned(&json, "registers", removed->registers);
    json_unsigned(&json, "unknown_chunks", removed->unknown_chunks);
    json_unsigned(&json, "strings", removed->strings);
    json_unsigned(&json, "metadata", removed->metadata);
    json_unsigned(&json, "build_ids", removed->build_ids);
    json_unsigned(&json, "user_events", removed->user_events);
    json_end_object(&json);
}

void csv_redact(struct report *report, const struct report_redaction *data)
{
    const struct ttd_redaction *removed = data->removed;
    struct csv csv;
    csv_init(&csv, report->output);
    csv_header(&csv,
               "result,has_strings,page_bytes,memory_snapshots,registers,unknown_chunks,strings,"
               "metadata,build_ids,user_events");
    csv_text(&csv, data->result);
    csv_unsigned(&csv, data->has_strings);
    csv_unsigned(&csv, removed->page_bytes);
    csv_unsigned(&csv, removed->memory_snapshots);
    csv_unsigned(&csv, removed->registers);
    csv_unsigned(&csv, removed->unknown_chunks);
    csv_unsigned(&csv, removed->strings);
    csv_unsigned(&csv, removed->metadata);
    csv_unsigned(&csv, removed->build_ids);
    csv_unsigned(&csv, removed->user_events);
    csv_end_row(&csv);
}
