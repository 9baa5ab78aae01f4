/* SPDX-License-Identifier: MIT */
/* The report of `snapshots`. */
#include "report/trace/trace_reports.h"

/** Names of the contents of a snapshot, by the bits of ttd_snapshot_contents. */
static const char *const contents_names[] = {"blocks", "references", "memory"};

static void text_duration(struct text_output *output, uint64_t nanoseconds)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double value = (double)nanoseconds;
    size_t unit = 0;
    for (; value >= 1000 && unit < 3; unit++)
        value /= 1000;
    out_format(output, "%.3g %s", value, units[unit]);
}

static void text_snapshot_contents(struct text_output *output,
                                   const struct heap_listed_snapshot *listed)
{
    const struct heap_snapshot_parts *parts = &listed->parts;
    bool is_first = true;
    for (unsigned bit = 0; bit < 3; bit++) {
        if (!(listed->snapshot.contents & 1u << bit))
            continue;
        out_text(output, is_first ? "  " : ", ");
        is_first = false;
        out_text(output, contents_names[bit]);
        if (1u << bit == TTD_SNAPSHOT_REFERENCES) {
            out_format(output, " (");
            out_grouped(output, parts->references);
            out_text(output, " in ");
            report_count(output, parts->regions, "region");
            out_char(output, ')');
        }
        if (1u << bit == TTD_SNAPSHOT_MEMORY) {
            out_text(output, " (");
            report_count(output, parts->mapped_bytes, "byte");
            out_text(output, ", ");
            out_grouped(output, parts->page_bytes);
            out_text(output, " of them stored)");
        }
    }
}

static void text_listed_snapshot(struct report *report, const struct heap_listed_snapshot *listed)
{
    static const char *const reasons[] = {"",
                                          ", asked for from outside",
                                          ", taken at intervals",
                                          ", asked for by the program",
                                          ", at the end of the program",
                                          ", when the program died of a signal"};
    const struct ttd_snapshot *snapshot = &listed->snapshot;
    struct text_output *output = report->output;
    out_char(output, '\n');
    report_snapshot_text(report, snapshot);
    if (snapshot->reason < sizeof reasons / sizeof reasons[0])
        out_text(output, reasons[snapshot->reason]);
    if (snapshot->thread)
        out_format(output, " (thread %u)", snapshot->thread);
    out_char(output, '\n');
    text_snapshot_contents(output, listed);
    out_text(output, "\n  ");
    report_count(output, listed->parts.stored_bytes, "byte");
    out_format(output, " in the trace; taken after %.6g s; the program was held for ",
               (double)snapshot->wall_time / 1e9);
    text_duration(output, snapshot->duration);
    out_text(output, snapshot->flags & TTD_SNAPSHOT_STOPPED ? ", all threads stopped" : "");
    out_text(output, snapshot->flags & TTD_SNAPSHOT_COPIED ? ", and copied\n" : "\n");
}

void text_snapshots(struct report *report, const struct heap_snapshot_list *list)
{
    out_bold(report->output);
    report_count(report->output, list->count, "snapshot");
    out_plain(report->output);
    if (list->cut_short) {
        out_text(report->output, "; ");
        out_grouped(report->output, list->cut_short);
        out_text(report->output, " more cut short, and not used");
    }
    out_char(report->output, '\n');
    report_certainty_text(report);
    for (size_t i = 0; i < list->count; i++)
        text_listed_snapshot(report, &list->snapshots[i]);
}

static void json_snapshot(struct json *json, const struct heap_listed_snapshot *listed)
{
    const struct ttd_snapshot *snapshot = &listed->snapshot;
    json_begin_object(json, NULL);
    json_unsigned(json, "number", snapshot->number);
    json_position(json, "position", snapshot->position);
    json_text(json, "reason", report_snapshot_reason(snapshot));
    json_bool(json, "stopped", snapshot->flags & TTD_SNAPSHOT_STOPPED);
    json_bool(json, "complete", !(snapshot->flags & TTD_SNAPSHOT_INCOMPLETE));
    json_unsigned(json, "missing_bytes", snapshot->missing);
    json_unsigned(json, "wall_time_ns", snapshot->wall_time);
    json_unsigned(json, "held_ns", snapshot->duration);
    json_bool(json, "copied", snapshot->flags & TTD_SNAPSHOT_COPIED);
    json_unsigned(json, "thread", snapshot->thread);
    json_begin_array(json, "contents");
    for (unsigned bit = 0; bit < 3; bit++)
        if (snapshot->contents & 1u << bit)
            json_text(json, NULL, contents_names[bit]);
    json_end_array(json);
    json_unsigned(json, "stored_bytes", listed->parts.stored_bytes);
    json_unsigned(json, "regions", listed->parts.regions);
    json_unsigned(json, "references", listed->parts.references);
    json_unsigned(json, "classes", listed->parts.classes);
    json_unsigned(json, "mapped_bytes", listed->parts.mapped_bytes);
    json_unsigned(json, "page_bytes", listed->parts.page_bytes);
    json_end_object(json);
}

void json_snapshots(struct report *report, const struct heap_snapshot_list *list)
{
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    report_certainty_json(report, &json);
    json_unsigned(&json, "cut_short", list->cut_short);
    json_begin_array(&json, "snapshots");
    for (size_t i = 0; i < list->count; i++)
        json_snapshot(&json, &list->snapshots[i]);
    json_end_array(&json);
    json_end_object(&json);
}

void csv_snapshots(struct report *report, const struct heap_snapshot_list *list)
{
    struct csv csv;
    report_csv_begin(report, &csv);
    csv_header(
        &csv,
        "number,position,wall_time_ns,reason,stopped,complete,missing_bytes,held_ns,copied,blocks,"
        "references,memory,stored_bytes,mapped_bytes,page_bytes");
    for (size_t i = 0; i < list->count; i++) {
        const struct heap_listed_snapshot *listed = &list->snapshots[i];
        const struct ttd_snapshot *snapshot = &listed->snapshot;
        csv_unsigned(&csv, snapshot->number);
        csv_position(&csv, snapshot->position);
        csv_unsigned(&csv, snapshot->wall_time);
        csv_text(&csv, report_snapshot_reason(snapshot));
        csv_bool(&csv, snapshot->flags & TTD_SNAPSHOT_STOPPED);
        csv_bool(&csv, !(snapshot->flags & TTD_SNAPSHOT_INCOMPLETE));
        csv_unsigned(&csv, snapshot->missing);
        csv_unsigned(&csv, snapshot->duration);
        csv_bool(&csv, snapshot->flags & TTD_SNAPSHOT_COPIED);
        csv_bool(&csv, snapshot->contents & TTD_SNAPSHOT_BLOCKS);
        csv_unsigned_if(&csv, snapshot->contents & TTD_SNAPSHOT_REFERENCES,
                        listed->parts.references);
        csv_bool(&csv, snapshot->contents & TTD_SNAPSHOT_MEMORY);
        csv_unsigned(&csv, listed->parts.stored_bytes);
        csv_unsigned(&csv, listed->parts.mapped_bytes);
        csv_unsigned(&csv, listed->parts.page_bytes);
        csv_end_row(&csv);
    }
}
