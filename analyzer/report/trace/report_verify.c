/* SPDX-License-Identifier: MIT */
/* The reports of `verify` and `recover`. */
#include "report/trace/trace_reports.h"
#include "report/writers/escape.h"

static bool problem_has_gap(const struct ttd_problem *problem)
{
    return problem->missing_chunks || problem->missing_events;
}

/* A problem outside of events has no positions. */
static bool has_positions(const struct ttd_problem *problem)
{
    struct ttd_position no_position = ttd_position_min();
    return ttd_position_compare(problem->last_good, no_position) != 0 ||
           ttd_position_compare(problem->first_good, no_position) != 0;
}

static void text_missing(struct text_output *output, uint64_t count, const char *unit)
{
    if (count == TTD_UNKNOWN) {
        out_text(output, "an unknown number of ");
        out_text(output, unit);
        out_char(output, 's');
    } else {
        report_count(output, count, unit);
    }
}

static void text_gap(struct text_output *output, const struct ttd_problem *problem)
{
    out_text(output, " (missing ");
    if (problem->missing_chunks)
        text_missing(output, problem->missing_chunks, "chunk");
    if (problem->missing_chunks && problem->missing_events)
        out_text(output, ", ");
    if (problem->missing_events)
        text_missing(output, problem->missing_events, "event");
    if (has_positions(problem)) {
        bool has_end = ttd_position_is_valid(problem->first_good);
        out_text(output, has_end ? " between " : " after ");
        out_position(output, problem->last_good);
        if (has_end) {
            out_text(output, " and ");
            out_position(output, problem->first_good);
        }
    }
    out_char(output, ')');
}

void text_verify_begin(struct report *report)
{
    (void)report;
}

void text_problem(struct report *report, const struct ttd_problem *problem, uint64_t index)
{
    (void)index;
    struct text_output *output = report->output;
    const struct ttd_error *error = &problem->error;
    escape_text(output, escape_string(report->path));
    out_text(output, ": ");
    if (error->offset != TTD_NOWHERE) {
        out_text(output, "offset ");
        out_hex(output, error->offset);
    }
    if (error->chunk != TTD_NOWHERE) {
        out_text(output, error->offset != TTD_NOWHERE ? ", chunk " : "chunk ");
        out_unsigned(output, error->chunk);
    }
    if (error->offset != TTD_NOWHERE || error->chunk != TTD_NOWHERE)
        out_text(output, ": ");
    out_alarm(output);
    out_text(output, ttd_status_text(error->status));
    out_plain(output);
    out_text(output, ": ");
    out_text(output, error->what);
    if (problem_has_gap(problem))
        text_gap(output, problem);
    out_char(output, '\n');
}

void text_verify_end(struct report *report, const struct report_verification *data)
{
    const struct ttd_verdict *verdict = &data->verdict;
    struct text_output *output = report->output;
    escape_text(output, escape_string(report->path));
    out_text(output, ": ");
    if (verdict->ok)
        out_text(output, "intact");
    else
        report_count(output, verdict->problems, "problem");
    out_text(output, ": ");
    report_count(output, verdict->chunks, "chunk");
    out_text(output, ", ");
    report_count(output, verdict->events, "event");
    out_text(output, ", ");
    report_count(output, verdict->lost_events, "event");
    out_text(output, " lost, ");
    out_grouped(output, verdict->intact_bytes);
    out_text(output, " of ");
    report_count(output, verdict->file_bytes, "byte");
    out_text(output, verdict->closed ? " intact\n" : " intact, not closed cleanly\n");
    if (!data->index)
        return;
    escape_text(output, escape_string(data->index));
    out_text(output,
             data->is_index_wrong
                 ? ": the index does not agree with the trace: remove it, or make it again\n"
                 : ": the index agrees with the trace\n");
}

/* Begins the array of problems, which stays open until json_verify_end(). Its records are objects
 * of one line, so that a report that is cut off can be read line by line. */
void json_verify_begin(struct report *report)
{
    out_text(report->output, "{\n  \"problems\": [");
}

static void json_nowhere(struct json *json, const char *key, uint64_t value)
{
    if (value == TTD_NOWHERE)
        json_null(json, key);
    else
        json_unsigned(json, key, value);
}

void json_problem(struct report *report, const struct ttd_problem *problem, uint64_t index)
{
    out_text(report->output, index ? ",\n    " : "\n    ");
    struct json json;
    json_init(&json, report->output, false);
    json_begin_object(&json, NULL);
    json_text(&json, "file", report->path);
    json_nowhere(&json, "offset", problem->error.offset);
    json_nowhere(&json, "chunk", problem->error.chunk);
    json_text(&json, "status", ttd_status_text(problem->error.status));
    json_text(&json, "what", problem->error.what);
    json_unsigned(&json, "bytes", problem->bytes);
    json_count(&json, "missing_chunks", problem->missing_chunks);
    json_count(&json, "missing_events", problem->missing_events);
    bool is_known = has_positions(problem);
    json_position(&json, "last_good", is_known ? problem->last_good : ttd_position_invalid());
    json_position(&json, "first_good", is_known ? problem->first_good : ttd_position_invalid());
    json_end_object(&json);
}

/* Writes the members of a verdict into an open object. */
static void json_verdict(struct json *json, const struct ttd_verdict *verdict)
{
    json_bool(json, "ok", verdict->ok);
    json_bool(json, "closed", verdict->closed);
    json_unsigned(json, "problem_count", verdict->problems);
    json_unsigned(json, "chunks", verdict->chunks);
    json_unsigned(json, "events", verdict->events);
    json_unsigned(json, "lost_events", verdict->lost_events);
    json_unsigned(json, "file_bytes", verdict->file_bytes);
    json_unsigned(json, "intact_bytes", verdict->intact_bytes);
}

void json_verify_end(struct report *report, const struct report_verification *data)
{
    struct ttd_verdict verdict = data->verdict;
    verdict.ok = verdict.ok && !data->is_index_wrong;
    /* A wrong index is one problem more. */
    verdict.problems += data->is_index_wrong;
    out_text(report->output, verdict.problems ? "\n  ]" : "]");
    struct json json;
    json_init(&json, report->output, true);
    /* The object was opened by json_verify_begin(). */
    json.depth = 1;
    json.has_member[1] = true;
    if (data->index)
        json_bool(&json, "index_agrees", !data->is_index_wrong);
    else
        json_null(&json, "index_agrees");
    json_verdict(&json, &verdict);
    json_end_object(&json);
}

void csv_verify_begin(struct report *report)
{
    struct csv csv;
    csv_init(&csv, report->output);
    csv_header(&csv, "file,offset,chunk,status,what,bytes,missing_chunks,missing_events,"
                     "last_good,first_good");
}

void csv_problem(struct report *report, const struct ttd_problem *problem, uint64_t index)
{
    (void)index;
    struct csv csv;
    csv_init(&csv, report->output);
    csv_text(&csv, report->path);
    csv_count(&csv, problem->error.offset);
    csv_count(&csv, problem->error.chunk);
    csv_text(&csv, ttd_status_text(problem->error.status));
    csv_text(&csv, problem->error.what);
    csv_unsigned(&csv, problem->bytes);
    csv_count(&csv, problem->missing_chunks);
    csv_count(&csv, problem->missing_events);
    bool is_known = has_positions(problem);
    csv_position(&csv, is_known ? problem->last_good : ttd_position_invalid());
    csv_position(&csv, is_known ? problem->first_good : ttd_position_invalid());
    csv_end_row(&csv);
}

/* CSV has the problems only, and no place for the verdict. */
void csv_verify_end(struct report *report, const struct report_verification *data)
{
    (void)report;
    (void)data;
}

void text_recover(struct report *report, const struct report_recovery *data)
{
    const struct ttd_verdict *verdict = data->verdict;
    struct text_output *output = report->output;
    escape_text(output, escape_string(data->result));
    out_text(output, ": recovered ");
    report_count(output, verdict->events, "event");
    out_text(output, " in ");
    report_count(output, verdict->chunks, "chunk");
    out_text(output, "; ");
    report_count(output, verdict->problems, "problem");
    out_text(output, ", at least ");
    report_count(output, verdict->lost_events, "event");
    out_text(output, " lost, ");
    out_grouped(output, verdict->intact_bytes);
    out_text(output, " of ");
    report_count(output, verdict->file_bytes, "byte");
    out_text(output, " were intact\n");
}

void json_recover(struct report *report, const struct report_recovery *data)
{
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_text(&json, "result", data->result);
    json_verdict(&json, data->verdict);
    json_end_object(&json);
}

void csv_recover(struct report *report, const struct report_recovery *data)
{
    struct csv csv;
    csv_init(&csv, report->output);
    csv_header(&csv, "result,closed,problems,chunks,events,lost_events,file_bytes,intact_bytes");
    csv_text(&csv, data->result);
    csv_unsigned(&csv, data->verdict->closed);
    csv_unsigned(&csv, data->verdict->problems);
    csv_unsigned(&csv, data->verdict->chunks);
    csv_unsigned(&csv, data->verdict->events);
    csv_unsigned(&csv, data->verdict->lost_events);
    csv_unsigned(&csv, data->verdict->file_bytes);
    csv_unsigned(&csv, data->verdict->intact_bytes);
    csv_end_row(&csv);
}

/* The report of `redact`. */

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

/* The report of `index`: the index that was made. */

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
