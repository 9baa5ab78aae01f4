/* SPDX-License-Identifier: MIT */
/* The report of `summary` as JSON and as CSV. */
#include <stdio.h>
#include <string.h>

#include "report/trace/info.h"
#include "report/trace/trace_reports.h"
#include "report/writers/escape.h"
#include "view/glob.h"

/* The report of `summary` as text: the name of a command, its answer, and whose doing it is. */

/* Column of the answers, and the width of a line where the terminal's is not known. */
#define ANSWER_COLUMN 11
#define LINE_COLUMNS  80

static void summary_label(struct text_output *output, const char *command)
{
    out_bold(output);
    out_text(output, command);
    out_plain(output);
    out_tab(output, ANSWER_COLUMN);
}

static size_t summary_columns_left(const struct text_output *output, size_t needed)
{
    size_t width = output->width ? output->width : LINE_COLUMNS;
    size_t used = output->column + needed;
    return used < width ? width - used : 0;
}

/* Writes "67 % by Index::add (index.cpp:41)". */
static void summary_owner_text(struct report *report, const struct report_owner *owner)
{
    struct text_output *output = report->output;
    out_format(output, "%.0f %% by ", 100 * owner->share);
    report_function_place_text(report, owner->stack, &owner->function,
                               summary_columns_left(output, 0));
}

/* Writes an owner in a line of its own. */
static void summary_owner(struct report *report, const struct report_owner *owner)
{
    if (!owner->is_known)
        return;
    out_tab(report->output, ANSWER_COLUMN);
    summary_owner_text(report, owner);
    out_char(report->output, '\n');
}

static void summary_sum(struct text_output *output, struct report_sum sum)
{
    out_size(output, sum.bytes);
    out_text(output, " in ");
    report_count(output, sum.blocks, "block");
}

/* Writes the program, and how it ended. */
static void summary_process(struct report *report, const struct report_summary *data)
{
    struct text_output *output = report->output;
    const struct ttd_end *end = data->info.end;
    out_bold(output);
    escape_text(output, data->command.size ? data->command : escape_string("(unknown command)"));
    out_plain(output);
    out_char(output, '\n');
    summary_label(output, "info");
    if (!data->info.is_closed) {
        out_alarm(output);
        out_text(output, "not closed cleanly: the recorder died, or is still recording\n");
        out_plain(output);
    } else {
        out_text(output, info_end_reason(&data->info));
        if (end->reason == TTD_END_REASON_EXITED)
            out_format(output, " %u", end->code);
        if (end->reason == TTD_END_REASON_SIGNALED) {
            out_text(output, " by ");
            report_signal_number_text(output, end->code);
        }
        if (end->reason != TTD_END_REASON_NOT_RECORDED)
            out_format(output, " after %.3g s", (double)end->wall_time / 1e9);
        out_char(output, '\n');
    }
    out_tab(output, ANSWER_COLUMN);
    report_count(output, data->allocated.blocks, "allocation");
    out_text(output, ", ");
    out_size(output, data->allocated.bytes);
    out_text(output, " in all, by ");
    report_count(output, data->info.stats->thread_count, "thread");
    out_char(output, '\n');
    if (data->before.size) {
        out_tab(output, ANSWER_COLUMN);
        out_text(output, "among them ");
        escape_text(output, data->before);
        out_char(output, '\n');
    }
}

static void summary_peak(struct report *report, const struct report_summary *data)
{
    summary_label(report->output, "peak");
    summary_sum(report->output, data->peak);
    if (data->peak.blocks) {
        out_text(report->output, " at ");
        report_position_text(report, data->peak_position);
    }
    out_char(report->output, '\n');
    summary_owner(report, &data->peak_owner);
}

/* Writes when the owner allocated the blocks that are lost. */
static void summary_lost_when(struct report *report, const struct report_owner *owner)
{
    struct text_output *output = report->output;
    if (!owner->is_known || ttd_position_compare(owner->first, owner->last) > 0)
        return;
    out_tab(output, ANSWER_COLUMN);
    report_count(output, owner->blocks, "block");
    out_text(output, owner->blocks == 1 ? ", allocated at " : ", allocated from ");
    report_position_text(report, owner->first);
    if (owner->blocks > 1) {
        out_text(output, " to ");
        report_position_text(report, owner->last);
    }
    out_char(output, '\n');
}

static void summary_lost(struct report *report, const struct report_summary *data)
{
    struct text_output *output = report->output;
    summary_label(output, "leaks");
    if (data->lost.blocks)
        summary_sum(output, data->lost);
    else
        out_text(output, data->has_snapshot     ? "nothing is definitely lost"
                         : data->unknown.blocks ? "nothing is known to be lost"
                                                : "none: all released");
    if (data->lost.blocks)
        out_text(output, data->has_snapshot ? " definitely lost" : " never released");
    if (data->below.blocks) {
        out_text(output, ", and ");
        out_size(output, data->below.bytes);
        out_text(output, " below");
    }
    out_char(output, '\n');
    summary_owner(report, &data->lost_owner);
    summary_lost_when(report, &data->lost_owner);
    if (data->possible.blocks) {
        out_tab(output, ANSWER_COLUMN);
        summary_sum(output, data->possible);
        out_text(output, " possibly lost\n");
    }
    if (!data->has_snapshot && data->lost.blocks) {
        out_tab(output, ANSWER_COLUMN);
        out_text(output, "no snapshot tells which of them are lost\n");
    }
}

static void summary_temporary(struct report *report, const struct report_summary *data)
{
    struct text_output *output = report->output;
    double all = (double)data->allocated.blocks;
    summary_label(output, "temporary");
    if (data->temporary.blocks) {
        report_count(output, data->temporary.blocks, "allocation");
        out_format(output, " (%.0f %%) freed by the next call of their thread",
                   100 * (double)data->temporary.blocks / all);
    } else {
        out_text(output, "no block is freed by the next call of its thread");
    }
    out_char(output, '\n');
    summary_owner(report, &data->temporary_owner);
}

static void summary_moves(struct report *report, const struct report_summary *data)
{
    struct text_output *output = report->output;
    summary_label(output, "moves");
    if (data->copied != data->copied_at_most)
        out_text(output, "at most ");
    out_size(output, data->copied_at_most);
    out_text(output, " copied by ");
    report_count(output, data->reallocs, "reallocation");
    out_text(output, ", ");
    out_grouped(output, data->moved);
    out_text(output, " of which moved\n");
    summary_owner(report, &data->moves_owner);
}

static void summary_errors(struct report *report, const struct report_summary *data)
{
    struct text_output *output = report->output;
    summary_label(output, "errors");
    if (!data->error_count && !data->fatal)
        out_text(output, "none in the calls of the heap; reads and writes are not watched\n");
    else
        out_alarm(output);
    if (data->fatal) {
        report_signal_text(report, data->fatal);
        out_char(output, '\n');
    }
    for (size_t i = 0; i < data->error_count; i++) {
        const struct report_error_count *count = &data->errors[i];
        if (i || data->fatal)
            out_tab(output, ANSWER_COLUMN);
        out_text(output, count->kind);
        out_text(output, ": ");
        report_count(output, count->calls, "call");
        out_text(output, count->is_certain ? "\n" : ", uncertain\n");
    }
    out_plain(output);
}

/* Writes a sum and its owner in one line: "16.9 MB, 95 % by Index::add (index.cpp:41)". */
static void summary_brief_line(struct report *report, const char *command, uint64_t bytes,
                               const char *what, const struct report_owner *owner)
{
    summary_label(report->output, command);
    out_size(report->output, bytes);
    out_text(report->output, what);
    if (owner->is_known) {
        out_text(report->output, ", ");
        summary_owner_text(report, owner);
    }
    out_char(report->output, '\n');
}

static void summary_brief(struct report *report, const struct report_summary *data)
{
    report_certainty_text(report);
    if (data->error_count || data->fatal)
        summary_errors(report, data);
    if (data->lost.blocks)
        summary_brief_line(report, "leaks", data->lost.bytes,
                           data->has_snapshot ? " definitely lost" : " never released",
                           &data->lost_owner);
    else
        summary_lost(report, data);
    summary_brief_line(report, "peak", data->peak.bytes, "", &data->peak_owner);
}

void text_summary(struct report *report, const struct report_summary *data)
{
    struct text_output *output = report->output;
    if (data->is_brief) {
        summary_brief(report, data);
        return;
    }
    summary_process(report, data);
    report_certainty_text(report);
    summary_errors(report, data);
    summary_lost(report, data);
    summary_peak(report, data);
    summary_temporary(report, data);
    summary_moves(report, data);
    out_dim(output);
    out_text(output, "More: ttdanalyze leaks ");
    escape_text(output, escape_string(report->path));
    out_text(output, ", and the like; -h lists all commands\n");
    out_plain(output);
}

const struct frame *summary_frame(struct report *report, const struct report_owner *owner)
{
    return report_function_frame(report, owner->stack, &owner->function);
}

static void summary_json_sum(struct json *json, struct report_sum sum)
{
    json_unsigned(json, "blocks", sum.blocks);
    json_unsigned(json, "bytes", sum.bytes);
}

static void summary_json_named_sum(struct json *json, const char *key, struct report_sum sum)
{
    json_begin_object(json, key);
    summary_json_sum(json, sum);
    json_end_object(json);
}

static void summary_json_owner(struct report *report, struct json *json,
                               const struct report_owner *owner)
{
    if (!owner->is_known) {
        json_null(json, "owner");
        return;
    }
    const struct frame *frame = summary_frame(report, owner);
    bool has_line = frame && frame->file.size && frame->line;
    json_begin_object(json, "owner");
    json_double(json, "share", owner->share);
    summary_json_sum(json, (struct report_sum){owner->blocks, owner->bytes});
    json_name(json, "file", frame ? frame->file : (struct ttd_string){"", 0});
    json_count(json, "line", has_line ? frame->line : TTD_UNKNOWN);
    json_unsigned(json, "stack_id", owner->stack);
    report_label_json(report, json, &owner->function);
    json_end_object(json);
}

static void summary_json_lost(struct report *report, struct json *json,
                              const struct report_summary *data)
{
    bool has_range = data->lost_owner.is_known &&
                     ttd_position_compare(data->lost_owner.first, data->lost_owner.last) <= 0;
    json_begin_object(json, "leaks");
    json_text(json, "kind", data->has_snapshot ? "definitely_lost" : "never_released");
    summary_json_sum(json, data->lost);
    summary_json_named_sum(json, "indirectly_lost", data->below);
    summary_json_named_sum(json, "possibly_lost", data->possible);
    json_position(json, "first_position",
                  has_range ? data->lost_owner.first : ttd_position_invalid());
    json_position(json, "last_position",
                  has_range ? data->lost_owner.last : ttd_position_invalid());
    summary_json_owner(report, json, &data->lost_owner);
    json_end_object(json);
}

static void summary_json_errors(struct json *json, const struct report_summary *data)
{
    json_begin_array(json, "errors");
    for (size_t i = 0; i < data->error_count; i++) {
        json_begin_object(json, NULL);
        json_text(json, "kind", data->errors[i].kind);
        json_unsigned(json, "calls", data->errors[i].calls);
        json_bool(json, "certain", data->errors[i].is_certain);
        json_end_object(json);
    }
    json_end_array(json);
    if (!data->fatal) {
        json_null(json, "fatal_signal");
        return;
    }
    json_begin_object(json, "fatal_signal");
    report_signal_json(json, data->fatal);
    json_end_object(json);
}

static void summary_json_process(struct json *json, const struct report_summary *data)
{
    const struct report_info *info = &data->info;
    bool has_time = info->is_closed && info->end->reason != TTD_END_REASON_NOT_RECORDED;
    json_name(json, "command", data->command);
    json_name(json, "before", data->before);
    json_bool(json, "closed", info->is_closed);
    json_text(json, "end_reason", info->is_closed ? info_end_reason(info) : NULL);
    json_count(json, "end_code", info_has_end_code(info) ? info->end->code : TTD_UNKNOWN);
    json_count(json, "wall_time_ns", has_time ? info->end->wall_time : TTD_UNKNOWN);
    json_unsigned(json, "events", info->stats->events);
    json_unsigned(json, "threads", info->stats->thread_count);
}

void json_summary(struct report *report, const struct report_summary *data)
{
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    report_certainty_json(report, &json);
    summary_json_process(&json, data);
    summary_json_named_sum(&json, "allocated", data->allocated);
    summary_json_errors(&json, data);
    summary_json_lost(report, &json, data);
    json_begin_object(&json, "peak");
    json_position(&json, "position",
                  data->peak.blocks ? data->peak_position : ttd_position_invalid());
    summary_json_sum(&json, data->peak);
    summary_json_owner(report, &json, &data->peak_owner);
    json_end_object(&json);
    json_begin_object(&json, "temporary");
    summary_json_sum(&json, data->temporary);
    summary_json_owner(report, &json, &data->temporary_owner);
    json_end_object(&json);
    json_begin_object(&json, "moves");
    json_unsigned(&json, "reallocs", data->reallocs);
    json_unsigned(&json, "moved", data->moved);
    json_unsigned(&json, "bytes_copied", data->copied);
    json_unsigned(&json, "bytes_copied_at_most", data->copied_at_most);
    summary_json_owner(report, &json, &data->moves_owner);
    json_end_object(&json);
    json_end_object(&json);
}

static void summary_csv_row(struct report *report, struct csv *csv, const char *finding,
                            struct report_sum sum, const struct report_owner *owner)
{
    static const struct report_owner nobody = {.is_known = false};
    owner = owner ? owner : &nobody;
    const struct frame *frame = owner->is_known ? summary_frame(report, owner) : NULL;
    csv_text(csv, finding);
    csv_unsigned(csv, sum.blocks);
    csv_unsigned(csv, sum.bytes);
    if (owner->is_known) {
        csv_double(csv, owner->share);
        csv_string(csv, owner->function.name);
    } else {
        csv_empty(csv);
        csv_empty(csv);
    }
    csv_string(csv, frame ? frame->file : (struct ttd_string){"", 0});
    csv_unsigned_if(csv, frame && frame->line, frame ? frame->line : 0);
    csv_end_row(csv);
}

void csv_summary(struct report *report, const struct report_summary *data)
{
    struct csv csv;
    report_csv_begin(report, &csv);
    csv_header(&csv, "finding,blocks,bytes,share,function,file,line");
    bool is_certain = csv.is_certain;
    if (data->fatal)
        summary_csv_row(report, &csv, "fatal-signal", (struct report_sum){1, 0}, NULL);
    for (size_t i = 0; i < data->error_count; i++) {
        csv.is_certain = is_certain && data->errors[i].is_certain;
        summary_csv_row(report, &csv, data->errors[i].kind,
                        (struct report_sum){data->errors[i].calls, 0}, NULL);
    }
    csv.is_certain = is_certain;
    summary_csv_row(report, &csv, data->has_snapshot ? "definitely_lost" : "never_released",
                    data->lost, &data->lost_owner);
    summary_csv_row(report, &csv, "indirectly_lost", data->below, NULL);
    summary_csv_row(report, &csv, "possibly_lost", data->possible, NULL);
    summary_csv_row(report, &csv, "peak", data->peak, &data->peak_owner);
    summary_csv_row(report, &csv, "temporary", data->temporary, &data->temporary_owner);
    summary_csv_row(report, &csv, "moves", (struct report_sum){data->moved, data->copied_at_most},
                    &data->moves_owner);
    summary_csv_row(report, &csv, "allocated", data->allocated, NULL);
}
