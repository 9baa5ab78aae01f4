/* SPDX-License-Identifier: MIT */
/* The report of `summary` as text: the name of a command, its answer, and whose doing it is. */
#include <stdio.h>
#include <string.h>

#include "report/trace/info.h"
#include "report/trace/reports.h"
#include "report/writers/escape.h"
#include "view/glob.h"

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

/* Writes "67 % by Index::add (index.cpp:41)" in a line of its own. */
static void summary_owner(struct report *report, const struct report_owner *owner)
{
    struct text_output *output = report->output;
    if (!owner->is_known)
        return;
    char line[24] = "";
    const struct frame *frame = summary_frame(report, owner);
    struct ttd_string file = {"", 0};
    if (frame && frame->file.size) {
        file = glob_base_name(frame->file);
        snprintf(line, sizeof line, ":%u", frame->line);
    }
    out_tab(output, ANSWER_COLUMN);
    out_format(output, "%.0f %% by ", 100 * owner->share);
    if (owner->function.name.size) {
        size_t place = file.size ? file.size + strlen(line) + strlen(" ()") : 0;
        report_function_cut(report, owner->function.name, summary_columns_left(output, place));
    } else {
        report_label_text(report, &owner->function);
    }
    if (file.size) {
        out_text(output, " (");
        escape_text(output, file);
        out_text(output, line);
        out_char(output, ')');
    }
    out_char(output, '\n');
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

void text_summary(struct report *report, const struct report_summary *data)
{
    struct text_output *output = report->output;
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
