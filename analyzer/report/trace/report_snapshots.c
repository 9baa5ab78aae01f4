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

static void text_snapshots(struct report *report, const struct heap_snapshot_list *list)
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

static void row_listed_snapshot(struct row *row, const struct heap_listed_snapshot *listed)
{
    const struct ttd_snapshot *snapshot = &listed->snapshot;
    const struct heap_snapshot_parts *parts = &listed->parts;
    row_unsigned(row, "number", snapshot->number);
    row_position(row, "position", snapshot->position);
    if (!row->is_json)
        row_unsigned(row, "wall_time_ns", snapshot->wall_time);
    row_text(row, "reason", report_snapshot_reason(snapshot));
    row_bool(row, "stopped", snapshot->flags & TTD_SNAPSHOT_STOPPED);
    row_bool(row, "complete", !(snapshot->flags & TTD_SNAPSHOT_INCOMPLETE));
    row_unsigned(row, "missing_bytes", snapshot->missing);
    if (row->is_json)
        row_unsigned(row, "wall_time_ns", snapshot->wall_time);
    row_unsigned(row, "held_ns", snapshot->duration);
    row_bool(row, "copied", snapshot->flags & TTD_SNAPSHOT_COPIED);
    if (row->is_json) {
        row_unsigned(row, "thread", snapshot->thread);
        row_begin_array(row, "contents");
        for (unsigned bit = 0; bit < 3; bit++)
            if (snapshot->contents & 1u << bit)
                row_text(row, NULL, contents_names[bit]);
        row_end_array(row);
    } else {
        row_bool(row, "blocks", snapshot->contents & TTD_SNAPSHOT_BLOCKS);
        row_unsigned_if(row, "references", snapshot->contents & TTD_SNAPSHOT_REFERENCES,
                        parts->references);
        row_bool(row, "memory", snapshot->contents & TTD_SNAPSHOT_MEMORY);
    }
    row_unsigned(row, "stored_bytes", parts->stored_bytes);
    if (row->is_json) {
        row_unsigned(row, "regions", parts->regions);
        row_unsigned(row, "references", parts->references);
        row_unsigned(row, "classes", parts->classes);
    }
    row_unsigned(row, "mapped_bytes", parts->mapped_bytes);
    row_unsigned(row, "page_bytes", parts->page_bytes);
}

void report_snapshots(struct report *report, const struct heap_snapshot_list *list)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        text_snapshots(report, list);
        return;
    }
    row_open(&row, report);
    row_certainty(&row);
    row_unsigned(&row, "cut_short", list->cut_short);
    ROW_EACH(&row, "snapshots", struct heap_listed_snapshot, listed, list->snapshots, list->count)
    row_listed_snapshot(&row, listed);
    row_end_object(&row);
}
