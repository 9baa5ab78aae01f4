/* SPDX-License-Identifier: MIT */
/* The report of `summary` as JSON and as CSV. */
#include "report/trace/info.h"
#include "report/trace/reports.h"

const struct frame *summary_frame(struct report *report, const struct report_owner *owner)
{
    report_expand(report, owner->stack);
    for (size_t i = 0; i < report->frames.count; i++) {
        struct view_label label = label_of_frame(LABEL_FUNCTION, &report->frames.frames[i]);
        if (label.name.size == owner->function.name.size &&
            label.name.data == owner->function.name.data)
            return &report->frames.frames[i];
    }
    return NULL;
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
