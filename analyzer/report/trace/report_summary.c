/* SPDX-License-Identifier: MIT */
/* The report of `summary` as JSON and as CSV. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/trace/trace_reports.h"
#include "report/writers/out.h"
#include "view/function_names.h"

/* The report of `summary` as text: the name of a command, its answer, and whose doing it is. */

/* Column of the answers, and the width of a line where the terminal's is not known. */
#define ANSWER_COLUMN 11
#define LINE_COLUMNS  80

/* The longest name of a function that stands in a line with its hint. */
#define NAME_OF_A_LINE 16

static void summary_label(struct text_output *output, const char *command)
{
    say(output, BOLD, command, PLAIN, tab(ANSWER_COLUMN));
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

/* Whether an owner looks like a wrapper of an allocator. */
static bool summary_is_wrapper(struct report *report, const struct heap_groups *groups,
                               const struct report_owner *owner, struct report_wrapper *wrapper)
{
    const struct report_amounts amounts = report_group_amounts(groups);
    const struct frame *frame =
        owner->is_known ? report_function_frame(report, owner->stack, &owner->function) : NULL;
    ttd_id name = frame ? frame->name : TTD_NONE;
    return frame && report_find_wrapper(report, &amounts, wrapper) && wrapper->name == name;
}

static void summary_wrapper(struct text_output *output, const char *command,
                            const struct report_wrapper *wrapper)
{
    say(output, tab(ANSWER_COLUMN), "perhaps a wrapper:");
    if (wrapper->function.size > NAME_OF_A_LINE)
        out_char(output, '\n');
    say(output, tab(ANSWER_COLUMN), command, " ");
    report_skip_text(output, wrapper);
}

static void summary_lost_wrapper(struct report *report, const struct report_summary *data)
{
    struct report_wrapper wrapper;
    if (summary_is_wrapper(report, data->lost_groups, &data->lost_owner, &wrapper))
        summary_wrapper(report->output, "leaks", &wrapper);
}

/* Says it of the blocks at the peak where it was not said of those that are lost. */
static void summary_peak_wrapper(struct report *report, const struct report_summary *data)
{
    struct report_wrapper wrapper;
    if (!summary_is_wrapper(report, data->lost_groups, &data->lost_owner, &wrapper) &&
        summary_is_wrapper(report, data->peak_groups, &data->peak_owner, &wrapper))
        summary_wrapper(report->output, "peak", &wrapper);
}

static void summary_sum(struct text_output *output, struct report_sum sum)
{
    say(output, rounded(sum.bytes), " in ", blocks(sum.blocks));
}

/* Writes the command line in a line: `info` has all of a long one. */
static void summary_command(struct text_output *output, struct ttd_string command)
{
    say(output, BOLD);
    if (command.size)
        report_middle_cut(output, command, summary_columns_left(output, 0));
    else
        out_text(output, "(unknown command)");
    say(output, PLAIN, "\n");
}

/* Writes the program, and how it ended. */
static void summary_process(struct report *report, const struct report_summary *data)
{
    struct text_output *output = report->output;
    const struct ttd_end *end = data->info.end;
    summary_command(output, data->command);
    summary_label(output, "info");
    if (!data->info.is_closed) {
        say(output, ALARM, "not closed cleanly: the recorder died, or is still recording\n", PLAIN);
    } else {
        out_text(output, info_end_reason(&data->info));
        if (end->reason == TTD_END_REASON_EXITED)
            out_format(output, " %u", end->code);
        if (end->reason == TTD_END_REASON_SIGNALED) {
            out_text(output, " by ");
            report_signal_number_text(output, end->code);
        }
        if (end->reason != TTD_END_REASON_NOT_RECORDED)
            say(output, " after ", lasting(end->wall_time));
        out_char(output, '\n');
    }
    say(output, tab(ANSWER_COLUMN), counted(data->allocated.blocks, "allocation"), ", ",
        rounded(data->allocated.bytes), " in all, by ", counted(data->threads, "thread"));
    if (data->programs > 1)
        say(output, " of ", grouped(data->programs), " programs in turn");
    out_char(output, '\n');
    if (data->before.size)
        say(output, tab(ANSWER_COLUMN), "among them ", data->before, "\n");
    report_pooled_text(report, data->choice, ANSWER_COLUMN);
}

static void summary_peak(struct report *report, const struct report_summary *data)
{
    summary_label(report->output, "peak");
    summary_sum(report->output, data->peak);
    if (data->peak.blocks)
        say(report->output, " at ", moment(report, data->peak_position));
    if (data->has_gap_before_peak)
        say(report->output, "\n", tab(ANSWER_COLUMN), REPORT_PEAK_GAP);
    out_char(report->output, '\n');
    summary_owner(report, &data->peak_owner);
    summary_peak_wrapper(report, data);
}

/* Writes when the owner allocated the blocks that are lost. */
static void summary_lost_when(struct report *report, const struct report_owner *owner)
{
    struct text_output *output = report->output;
    if (!owner->is_known || ttd_position_compare(owner->first, owner->last) > 0)
        return;
    say(output, tab(ANSWER_COLUMN), blocks(owner->blocks),
        owner->blocks == 1 ? ", allocated at " : ", allocated from ", moment(report, owner->first));
    if (owner->blocks > 1)
        say(output, " to ", moment(report, owner->last));
    out_char(output, '\n');
}

/* Writes blocks that are perhaps lost, and the option of `leaks` that lists them. */
static void summary_doubtful(struct text_output *output, struct report_sum sum, const char *what)
{
    if (!sum.blocks)
        return;
    out_tab(output, ANSWER_COLUMN);
    summary_sum(output, sum);
    out_text(output, what);
}

/* The kind of the blocks that are called lost. */

struct summary_kind {
    const char *name;
    const char *text;
};

static struct summary_kind summary_lost_kind(const struct report *report,
                                             const struct report_summary *data)
{
    if (data->has_snapshot)
        return (struct summary_kind){"definitely_lost", "definitely lost"};
    return (struct summary_kind){report->ending == ENDING_KNOWN ? "never_released" : "live_at_end",
                                 report_left_text(report->ending)};
}

/* Returns the answer if no block is lost. */
static const char *summary_nothing_lost(const struct report *report,
                                        const struct report_summary *data)
{
    if (data->has_snapshot)
        return "nothing is definitely lost";
    if (report->certainty.count || data->unknown.blocks)
        return "nothing is known to be lost";
    return data->left.blocks ? "none in the last program: all released" : "none: all released";
}

static void summary_lost(struct report *report, const struct report_summary *data)
{
    struct text_output *output = report->output;
    summary_label(output, "leaks");
    if (data->lost.blocks) {
        summary_sum(output, data->lost);
        say(output, " ", summary_lost_kind(report, data).text);
    } else {
        out_text(output, summary_nothing_lost(report, data));
    }
    if (data->below.blocks)
        say(output, ", and ", rounded(data->below.bytes), " below");
    out_char(output, '\n');
    summary_owner(report, &data->lost_owner);
    summary_lost_wrapper(report, data);
    summary_lost_when(report, &data->lost_owner);
    summary_doubtful(output, data->possible, " possibly lost (--show possible)\n");
    summary_doubtful(output, data->stale, " held by possibly stale words (--show stale)\n");
    summary_doubtful(output, data->left, " left by programs before, at exec: not searched\n");
    if (data->has_snapshot || !data->lost.blocks)
        return;
    if (report->ending == ENDING_KNOWN)
        say(output, tab(ANSWER_COLUMN), "no snapshot shows which of them are lost\n");
    else
        say(output, tab(ANSWER_COLUMN), "no finding: ", report_left_reason(report->ending), "\n");
}

static void summary_temporary(struct report *report, const struct report_summary *data)
{
    struct text_output *output = report->output;
    double all = (double)data->allocated.blocks;
    summary_label(output, "temporary");
    if (data->temporary.blocks) {
        say(output, counted(data->temporary.blocks, "allocation"), " (",
            percent(100 * (double)data->temporary.blocks / all),
            ") freed by the next call of their thread");
    } else {
        out_text(output, "no block is freed by the next call of its thread (later: --steps 3)");
    }
    out_char(output, '\n');
    /* The owner of less than a hundredth of all allocations is no advice. */
    if ((double)data->temporary.blocks * 100 >= all)
        summary_owner(report, &data->temporary_owner);
}

static void summary_moves(struct report *report, const struct report_summary *data)
{
    struct text_output *output = report->output;
    summary_label(output, "moves");
    if (!data->reallocs) {
        out_text(output, "nothing is reallocated\n");
        return;
    }
    if (data->copied != data->copied_at_most)
        out_text(output, "at most ");
    say(output, rounded(data->copied_at_most), " copied by ",
        counted(data->reallocs, "reallocation"), ", ", grouped(data->moved), " of which moved\n");
    summary_owner(report, &data->moves_owner);
}

/* Says how to get names if one of the owners is a function without one. */
static void summary_names(struct report *report, const struct report_summary *data)
{
    const struct report_owner *owners[] = {&data->lost_owner, &data->peak_owner,
                                           &data->temporary_owner, &data->moves_owner};
    size_t i = 0;
    while (i < sizeof owners / sizeof owners[0] &&
           (!owners[i]->is_known || owners[i]->function.kind != LABEL_FUNCTION ||
            owners[i]->function.name.size || !owners[i]->function.module.size))
        i++;
    if (i == sizeof owners / sizeof owners[0])
        return;
    summary_label(report->output, "names");
    out_text(report->output, "missing in ");
    report_names_text(report, owners[i]->function.module, ANSWER_COLUMN);
}

static void summary_errors(struct report *report, const struct report_summary *data)
{
    struct text_output *output = report->output;
    summary_label(output, "errors");
    if (!data->error_count && !data->fatal && report->ending >= ENDING_CUT)
        say(output, "none are known: ", report_early_end(report->ending), "\n");
    else if (!data->error_count && !data->fatal)
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
        say(output, count->kind, ": ", counted(count->calls, "call"),
            count->is_certain ? "\n" : ", uncertain\n");
    }
    out_plain(output);
}

/* Writes a sum and its owner in one line: "16.9 MB, 95 % by Index::add (index.cpp:41)". */
static void summary_brief_line(struct report *report, const char *command, uint64_t bytes,
                               const char *separator, const char *what,
                               const struct report_owner *owner)
{
    summary_label(report->output, command);
    say(report->output, rounded(bytes), separator, what);
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
    if (data->lost.blocks) {
        summary_brief_line(report, "leaks", data->lost.bytes, " ",
                           summary_lost_kind(report, data).text, &data->lost_owner);
        summary_lost_wrapper(report, data);
    } else {
        summary_lost(report, data);
    }
    report_pooled_text(report, data->choice, ANSWER_COLUMN);
    summary_brief_line(report, "peak", data->peak.bytes, data->has_gap_before_peak ? ", " : "",
                       data->has_gap_before_peak ? REPORT_PEAK_GAP : "", &data->peak_owner);
    summary_peak_wrapper(report, data);
}

static void text_summary(struct report *report, const struct report_summary *data)
{
    struct text_output *output = report->output;
    if (data->is_brief) {
        summary_brief(report, data);
        return;
    }
    summary_process(report, data);
    report_memory_samples_text(report, &data->info.stats->memory, data->peak.bytes, ANSWER_COLUMN);
    report_certainty_text(report);
    summary_errors(report, data);
    summary_lost(report, data);
    summary_peak(report, data);
    summary_temporary(report, data);
    summary_moves(report, data);
    summary_names(report, data);
    say(output, DIM, "More: ttdanalyze leaks ", escape_string(report->path),
        ", and the like; -h lists all commands\n", PLAIN);
}

const struct frame *summary_frame(struct report *report, const struct report_owner *owner)
{
    return report_function_frame(report, owner->stack, &owner->function);
}

static void summary_json_sum(struct row *row, struct report_sum sum)
{
    row_unsigned(row, "blocks", sum.blocks);
    row_unsigned(row, "bytes", sum.bytes);
}

static void summary_json_named_sum(struct row *row, const char *key, struct report_sum sum)
{
    row_begin_object(row, key);
    summary_json_sum(row, sum);
    row_end_object(row);
}

static void summary_json_owner(struct row *row, const struct report_owner *owner)
{
    if (!owner->is_known) {
        row_null(row, "owner");
        return;
    }
    const struct frame *frame = summary_frame(row->report, owner);
    bool has_line = frame && frame->file.size && frame->line;
    row_begin_object(row, "owner");
    row_double(row, "share", owner->share);
    summary_json_sum(row, (struct report_sum){owner->blocks, owner->bytes});
    row_name(row, "file", frame ? frame->file : (struct ttd_string){"", 0});
    row_count(row, "line", has_line ? frame->line : TTD_UNKNOWN);
    row_unsigned(row, "stack_id", owner->stack);
    row_label(row, &owner->function);
    row_end_object(row);
}

static void summary_json_lost(struct row *row, const struct report_summary *data)
{
    bool has_range = data->lost_owner.is_known &&
                     ttd_position_compare(data->lost_owner.first, data->lost_owner.last) <= 0;
    row_begin_object(row, "leaks");
    row_text(row, "kind", summary_lost_kind(row->report, data).name);
    row_bool(row, "judged", !row->report->unjudged);
    summary_json_sum(row, data->lost);
    summary_json_named_sum(row, "indirectly_lost", data->below);
    summary_json_named_sum(row, "possibly_lost", data->possible);
    summary_json_named_sum(row, "held_by_stale", data->stale);
    summary_json_named_sum(row, "left", data->left);
    row_position(row, "first_position",
                 has_range ? data->lost_owner.first : ttd_position_invalid());
    row_position(row, "last_position", has_range ? data->lost_owner.last : ttd_position_invalid());
    summary_json_owner(row, &data->lost_owner);
    row_end_object(row);
}

static void summary_json_errors(struct row *row, const struct report_summary *data)
{
    row_begin_array(row, "errors");
    for (size_t i = 0; i < data->error_count; i++) {
        row_begin_object(row, NULL);
        row_text(row, "kind", data->errors[i].kind);
        row_unsigned(row, "calls", data->errors[i].calls);
        row_bool(row, "certain", data->errors[i].is_certain);
        row_end_object(row);
    }
    row_end_array(row);
    if (!data->fatal) {
        row_null(row, "fatal_signal");
        return;
    }
    row_begin_object(row, "fatal_signal");
    row_signal(row, data->fatal);
    row_end_object(row);
}

static void summary_json_process(struct row *row, const struct report_summary *data)
{
    const struct report_info *info = &data->info;
    bool has_time = info->is_closed && info->end->reason != TTD_END_REASON_NOT_RECORDED;
    row_name(row, "command", data->command);
    row_name(row, "before", data->before);
    row_pooled(row, data->choice);
    row_bool(row, "closed", info->is_closed);
    row_text(row, "end_reason", info->is_closed ? info_end_reason(info) : NULL);
    row_count(row, "end_code", info_has_end_code(info) ? info->end->code : TTD_UNKNOWN);
    row_count(row, "wall_time_ns", has_time ? info->end->wall_time : TTD_UNKNOWN);
    row_unsigned(row, "events", info->stats->events);
    row_unsigned(row, "threads", info->stats->thread_count);
}

static void json_summary(struct report *report, const struct report_summary *data)
{
    const struct heap_memory_samples *memory = &data->info.stats->memory;
    struct row row;
    row_open(&row, report);
    row_certainty(&row);
    summary_json_process(&row, data);
    summary_json_named_sum(&row, "allocated", data->allocated);
    row_count(&row, "resident_bytes", memory->most_resident ? memory->most_resident : TTD_UNKNOWN);
    row_count(&row, "mapped_bytes", memory->most_resident ? memory->most_mapped : TTD_UNKNOWN);
    summary_json_errors(&row, data);
    summary_json_lost(&row, data);
    row_begin_object(&row, "peak");
    row_position(&row, "position",
                 data->peak.blocks ? data->peak_position : ttd_position_invalid());
    summary_json_sum(&row, data->peak);
    summary_json_owner(&row, &data->peak_owner);
    row_end_object(&row);
    row_begin_object(&row, "temporary");
    summary_json_sum(&row, data->temporary);
    summary_json_owner(&row, &data->temporary_owner);
    row_end_object(&row);
    row_begin_object(&row, "moves");
    row_unsigned(&row, "reallocs", data->reallocs);
    row_unsigned(&row, "moved", data->moved);
    row_unsigned(&row, "bytes_copied", data->copied);
    row_unsigned(&row, "bytes_copied_at_most", data->copied_at_most);
    summary_json_owner(&row, &data->moves_owner);
    row_end_object(&row);
    row_end_object(&row);
}

/* Writes a row of CSV, or its header for NULL: a finding of one of the commands. */
static void summary_row(struct row *row, const char *finding, struct report_sum sum,
                        const struct report_owner *owner)
{
    bool is_known = owner && owner->is_known;
    const struct frame *frame = is_known ? summary_frame(row->report, owner) : NULL;
    struct ttd_string nothing = {"", 0};
    if (finding)
        row_begin_record(row);
    row_text(row, "finding", finding);
    row_unsigned(row, "blocks", sum.blocks);
    row_unsigned(row, "bytes", sum.bytes);
    row_double(row, "share", is_known ? owner->share : NAN);
    row_string(row, "function", is_known ? owner->function.name : nothing);
    row_string(row, "file", frame ? frame->file : nothing);
    row_unsigned_if(row, "line", frame && frame->line, frame ? frame->line : 0);
    row_end_record(row);
}

static void csv_summary(struct report *report, const struct report_summary *data)
{
    struct report_sum none = {0, 0};
    struct row row;
    row_open(&row, report);
    bool is_certain = row.is_certain;
    row_begin_header(&row);
    summary_row(&row, NULL, none, NULL);
    if (data->fatal)
        summary_row(&row, "fatal-signal", (struct report_sum){1, 0}, NULL);
    for (size_t i = 0; i < data->error_count; i++) {
        row.is_certain = is_certain && data->errors[i].is_certain;
        summary_row(&row, data->errors[i].kind, (struct report_sum){data->errors[i].calls, 0},
                    NULL);
    }
    row.is_certain = is_certain;
    summary_row(&row, summary_lost_kind(report, data).name, data->lost, &data->lost_owner);
    summary_row(&row, "indirectly_lost", data->below, NULL);
    summary_row(&row, "possibly_lost", data->possible, NULL);
    summary_row(&row, "peak", data->peak, &data->peak_owner);
    summary_row(&row, "temporary", data->temporary, &data->temporary_owner);
    summary_row(&row, "moves", (struct report_sum){data->moved, data->copied_at_most},
                &data->moves_owner);
    summary_row(&row, "allocated", data->allocated, NULL);
}

void report_summary(struct report *report, const struct report_summary *data)
{
    if (report->form == REPORT_TEXT)
        text_summary(report, data);
    else if (report->form == REPORT_JSON)
        json_summary(report, data);
    else
        csv_summary(report, data);
}
