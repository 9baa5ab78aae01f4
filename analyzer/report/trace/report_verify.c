/* SPDX-License-Identifier: MIT */
/* The reports of `verify` and `recover`. */
#include "report/trace/trace_reports.h"
#include "report/writers/out.h"

/* A problem outside of events has no positions. */
static bool verify_has_positions(const struct ttd_problem *problem)
{
    struct ttd_position no_position = ttd_position_min();
    return ttd_position_compare(problem->last_good, no_position) != 0 ||
           ttd_position_compare(problem->first_good, no_position) != 0;
}

static void verify_text_missing(struct text_output *output, uint64_t count, const char *unit)
{
    if (count == TTD_UNKNOWN) {
        say(output, "an unknown number of ", unit, "s");
    } else {
        report_count(output, count, unit);
    }
}

static void verify_text_gap(struct text_output *output, const struct ttd_problem *problem)
{
    out_text(output, " (missing ");
    if (problem->missing_chunks)
        verify_text_missing(output, problem->missing_chunks, "chunk");
    if (problem->missing_chunks && problem->missing_events)
        out_text(output, ", ");
    if (problem->missing_events)
        verify_text_missing(output, problem->missing_events, "event");
    if (verify_has_positions(problem)) {
        bool has_end = ttd_position_is_valid(problem->first_good);
        say(output, has_end ? " between " : " after ", problem->last_good);
        if (has_end)
            say(output, " and ", problem->first_good);
    }
    out_char(output, ')');
}

static void verify_text_problem(struct report *report, const struct ttd_problem *problem)
{
    struct text_output *output = report->output;
    const struct ttd_error *error = &problem->error;
    say(output, escape_string(report->path), ": ");
    if (error->offset != TTD_NOWHERE)
        say(output, "offset ", hex(error->offset));
    if (error->chunk != TTD_NOWHERE)
        say(output, error->offset != TTD_NOWHERE ? ", chunk " : "chunk ", number(error->chunk));
    if (error->offset != TTD_NOWHERE || error->chunk != TTD_NOWHERE)
        out_text(output, ": ");
    say(output, ALARM, ttd_status_text(error->status), PLAIN, ": ", error->what);
    if (problem->missing_chunks || problem->missing_events)
        verify_text_gap(output, problem);
    out_char(output, '\n');
}

static void text_verify_end(struct report *report, const struct report_verification *data)
{
    const struct ttd_verdict *verdict = &data->verdict;
    struct text_output *output = report->output;
    say(output, escape_string(report->path), ": ");
    if (verdict->ok)
        out_text(output, "intact");
    else
        report_count(output, verdict->problems, "problem");
    say(output, ": ", counted(verdict->chunks, "chunk"), ", ", counted(verdict->events, "event"),
        ", ", counted(verdict->lost_events, "event"), " lost, ", grouped(verdict->intact_bytes),
        " of ", bytes(verdict->file_bytes),
        verdict->closed ? " intact\n" : " intact, not closed cleanly\n");
    if (!data->index)
        return;
    say(output, escape_string(data->index),
        data->is_index_wrong
            ? ": the index does not agree with the trace: remove it, or make it again\n"
            : ": the index agrees with the trace\n");
}

/* In JSON the array of problems stays open until report_verify_end(). Its records are objects of
 * one line, so that a report that is cut off can be read line by line. */
static void verify_row_problem(struct row *row, const struct ttd_problem *problem)
{
    bool is_known = verify_has_positions(problem);
    uint64_t offset = problem->error.offset, chunk = problem->error.chunk;
    row->has_verdict = false;
    row_text(row, "file", row->report->path);
    row_unsigned_if(row, "offset", offset != TTD_NOWHERE, offset);
    row_unsigned_if(row, "chunk", chunk != TTD_NOWHERE, chunk);
    row_text(row, "status", ttd_status_text(problem->error.status));
    row_text(row, "what", problem->error.what);
    row_unsigned(row, "bytes", problem->bytes);
    row_count(row, "missing_chunks", problem->missing_chunks);
    row_count(row, "missing_events", problem->missing_events);
    row_position(row, "last_good", is_known ? problem->last_good : ttd_position_invalid());
    row_position(row, "first_good", is_known ? problem->first_good : ttd_position_invalid());
    row_end_record(row);
}

void report_verify_begin(struct report *report)
{
    static const struct ttd_problem no_problem;
    struct row row;
    if (report->form == REPORT_JSON)
        out_text(report->output, "{\n  \"problems\": [");
    if (report->form != REPORT_CSV)
        return;
    row_open_line(&row, report, true);
    verify_row_problem(&row, &no_problem);
}

void report_problem(struct report *report, const struct ttd_problem *problem, uint64_t index)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        verify_text_problem(report, problem);
        return;
    }
    if (report->form == REPORT_JSON)
        out_text(report->output, index ? ",\n    " : "\n    ");
    row_open_line(&row, report, false);
    verify_row_problem(&row, problem);
}

/* Writes the members of a verdict, behind whether the trace is intact and closed. */
static void verify_row_verdict(struct row *row, const struct ttd_verdict *verdict)
{
    row_unsigned(row, row->is_json ? "problem_count" : "problems", verdict->problems);
    row_unsigned(row, "chunks", verdict->chunks);
    row_unsigned(row, "events", verdict->events);
    row_unsigned(row, "lost_events", verdict->lost_events);
    row_unsigned(row, "file_bytes", verdict->file_bytes);
    row_unsigned(row, "intact_bytes", verdict->intact_bytes);
}

/* CSV has the problems only, and no place for the verdict. */
void report_verify_end(struct report *report, const struct report_verification *data)
{
    struct ttd_verdict verdict = data->verdict;
    struct row row;
    if (report->form == REPORT_TEXT)
        text_verify_end(report, data);
    if (report->form != REPORT_JSON)
        return;
    /* A wrong index is one problem more. */
    verdict.problems += data->is_index_wrong;
    out_text(report->output, verdict.problems ? "\n  ]" : "]");
    row_init_json(&row, report->output, true);
    /* The object was opened by report_verify_begin(). */
    row.depth = 1;
    row.has_member[1] = true;
    if (data->index)
        row_bool(&row, "index_agrees", !data->is_index_wrong);
    else
        row_null(&row, "index_agrees");
    row_bool(&row, "ok", verdict.ok && !data->is_index_wrong);
    row_bool(&row, "closed", verdict.closed);
    verify_row_verdict(&row, &verdict);
    row_end_object(&row);
}

static void verify_text_recover(struct report *report, const struct report_recovery *data)
{
    const struct ttd_verdict *verdict = data->verdict;
    struct text_output *output = report->output;
    say(output, escape_string(data->result), ": recovered ", counted(verdict->events, "event"),
        " in ", counted(verdict->chunks, "chunk"), "; ", counted(verdict->problems, "problem"),
        ", at least ", counted(verdict->lost_events, "event"), " lost, ",
        grouped(verdict->intact_bytes), " of ");
    say(output, bytes(verdict->file_bytes), " were intact\n");
}

/* CSV has 0 and 1 in these records. */
static void verify_row_flag(struct row *row, const char *key, bool value)
{
    if (row->is_json)
        row_bool(row, key, value);
    else
        row_unsigned(row, key, value);
}

void report_recover(struct report *report, const struct report_recovery *data)
{
    const struct ttd_verdict *verdict = data->verdict;
    struct row row;
    if (report->form == REPORT_TEXT) {
        verify_text_recover(report, data);
        return;
    }
    ROW_ONLY(&row, report)
    {
        row_text(&row, "result", data->result);
        if (row.is_json)
            row_bool(&row, "ok", verdict->ok);
        verify_row_flag(&row, "closed", verdict->closed);
        verify_row_verdict(&row, verdict);
    }
}

/* The report of `redact`. */

static void verify_text_redact(struct report *report, const struct report_redaction *data)
{
    const struct ttd_redaction *removed = data->removed;
    struct text_output *output = report->output;
    say(output, escape_string(data->result), ": removed ", bytes(removed->page_bytes),
        " of memory in ", counted(removed->memory_snapshots, "snapshot"));
    if (removed->registers)
        say(output, ", ", counted(removed->registers, "register"));
    if (removed->unknown_chunks)
        say(output, ", ", counted(removed->unknown_chunks, "chunk"), " of unknown kind");
    if (data->has_strings) {
        out_text(output, "; strings are still there (--strings removes them)\n");
        return;
    }
    say(output, ", ", counted(removed->strings, "string"), ", ",
        counted(removed->metadata, "metadata record"), ", ",
        counted(removed->build_ids, "build-id"), ", data of ",
        counted(removed->user_events, "user event"), "\n");
}

void report_redact(struct report *report, const struct report_redaction *data)
{
    const struct ttd_redaction *removed = data->removed;
    struct row row;
    if (report->form == REPORT_TEXT) {
        verify_text_redact(report, data);
        return;
    }
    ROW_ONLY(&row, report)
    {
        row_text(&row, "result", data->result);
        verify_row_flag(&row, "has_strings", data->has_strings);
        row_unsigned(&row, "page_bytes", removed->page_bytes);
        row_unsigned(&row, "memory_snapshots", removed->memory_snapshots);
        row_unsigned(&row, "registers", removed->registers);
        row_unsigned(&row, "unknown_chunks", removed->unknown_chunks);
        row_unsigned(&row, "strings", removed->strings);
        row_unsigned(&row, "metadata", removed->metadata);
        row_unsigned(&row, "build_ids", removed->build_ids);
        row_unsigned(&row, "user_events", removed->user_events);
    }
}

/* The report of `import`. */

void report_import(struct report *report, const struct report_import *data)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        say(report->output, escape_string(data->result), ": ", counted(data->events, "event"),
            " of ", counted(data->lines, "line"));
        if (data->ignored)
            say(report->output, ", of which ", grouped(data->ignored), " had none");
        say(report->output, "\n");
        return;
    }
    ROW_ONLY(&row, report)
    {
        row_text(&row, "result", data->result);
        row_unsigned(&row, "events", data->events);
        row_unsigned(&row, "lines", data->lines);
        row_unsigned(&row, "ignored", data->ignored);
    }
}

/* The report of `index`: the index that was made. */

static void verify_text_index(struct report *report, const struct report_index *data)
{
    say(report->output, escape_string(data->file), ": ", counted(data->keyframes, "keyframe"));
    if (data->summaries)
        say(report->output, " and ", grouped(data->summaries),
            data->summaries == 1 ? " summary" : " summaries");
    say(report->output, " of ", counted(data->events, "event"), ", ", bytes(data->bytes), "\n");
}

void report_index(struct report *report, const struct report_index *data)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        verify_text_index(report, data);
        return;
    }
    ROW_ONLY(&row, report)
    {
        row_text(&row, "index", data->file);
        row_unsigned(&row, "keyframes", data->keyframes);
        row_unsigned(&row, "summaries", data->summaries);
        row_unsigned(&row, "events", data->events);
        row_unsigned(&row, "index_bytes", data->bytes);
    }
}

/* The report of `slice`, `merge` and `repack`. */

static void verify_text_remake(struct report *report, const struct report_remake *data)
{
    struct text_output *output = report->output;
    say(output, escape_string(data->result), ": ", counted(data->events, "event"));
    if (data->traces > 1)
        say(output, " of ", counted(data->traces, "trace"));
    if (data->kept)
        say(output, ", ", grouped(data->kept), " of them from before");
    say(output, "; ", bytes(data->bytes), " from ");
    say(output, bytes(data->source_bytes), "\n");
    if (!data->left_out && !data->records_left_out && !data->unknown_chunks)
        return;
    say(output, "Left out: ", counted(data->left_out, "event"), ", ",
        counted(data->records_left_out, "other record"));
    if (data->unknown_chunks)
        say(output, ", ", counted(data->unknown_chunks, "chunk"), " of unknown kind");
    out_char(output, '\n');
}

void report_remake(struct report *report, const struct report_remake *data)
{
    struct row row;
    if (report->form == REPORT_TEXT) {
        verify_text_remake(report, data);
        return;
    }
    ROW_ONLY(&row, report)
    {
        row_text(&row, "result", data->result);
        row_unsigned(&row, "traces", data->traces);
        row_unsigned(&row, "events", data->events);
        row_unsigned(&row, "kept", data->kept);
        row_unsigned(&row, "left_out", data->left_out);
        row_unsigned(&row, "records_left_out", data->records_left_out);
        row_unsigned(&row, "unknown_chunks", data->unknown_chunks);
        row_unsigned(&row, "source_bytes", data->source_bytes);
        row_unsigned(&row, "bytes", data->bytes);
    }
}
