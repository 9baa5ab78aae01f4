/* SPDX-License-Identifier: MIT */
/* The report of `info --group`: the traces of a recording. */
#include "report/trace/info.h"
#include "report/trace/reports.h"
#include "report/writers/escape.h"

/* Limit on the bytes of a command in text, so that a line fits a terminal. */
#define COMMAND_SHOWN 60

static struct report_info info_of(const struct report_member *member)
{
    return (struct report_info){
        .trace = &member->trace, .is_closed = member->is_closed, .end = &member->end};
}

static void text_command(struct text_output *output, struct ttd_string command, bool is_whole)
{
    struct ttd_string visible = command;
    if (!is_whole && visible.size > COMMAND_SHOWN) {
        visible.size = COMMAND_SHOWN;
        /* A character of several bytes is not cut. */
        while (visible.size && ((unsigned char)visible.data[visible.size] & 0xc0) == 0x80)
            visible.size--;
    }
    escape_text(output, visible);
    if (visible.size < command.size)
        out_text(output, " …");
}

static void text_member(struct report *report, const struct report_member *member)
{
    struct text_output *output = report->output;
    struct report_info data = info_of(member);
    if (info_has_origin(&member->trace)) {
        out_unsigned(output, member->trace.process_id);
        out_tab(output, 10);
        out_unsigned(output, member->trace.parent_process_id);
    } else {
        out_text(output, "unknown");
    }
    out_tab(output, 20);
    out_grouped(output, member->events);
    out_tab(output, 34);
    if (!member->is_closed)
        out_char(output, '?');
    else
        out_grouped(output, member->end.lost_events);
    out_tab(output, 44);
    if (!member->is_closed)
        out_alarm(output);
    out_text(output, member->is_closed ? info_end_reason(&data) : "not closed");
    out_plain(output);
    if (info_has_end_code(&data))
        out_format(output, " %u", member->end.code);
    out_tab(output, 58);
    escape_text(output, escape_string(member->path));
    out_char(output, '\n');
    if (!member->command.size)
        return;
    out_text(output, "    ");
    text_command(output, member->command, report->shows_all);
    out_char(output, '\n');
}

void text_recording(struct report *report, const struct report_group *data)
{
    struct text_output *output = report->output;
    uint64_t events = 0, lost = 0;
    size_t open = 0;
    out_bold(output);
    out_text(output, "Process   Parent    Events        Lost      End           Trace, command\n");
    out_plain(output);
    for (size_t i = 0; i < data->count; i++) {
        const struct report_member *member = &data->members[i];
        text_member(report, member);
        events += member->events;
        /* Only an End states how many events were lost. */
        lost += member->is_closed ? member->end.lost_events : 0;
        open += !member->is_closed;
    }
    out_text(output, "\nAll: ");
    report_count(output, data->count, "trace");
    out_text(output, ", ");
    report_count(output, events, "event");
    out_text(output, ", ");
    out_grouped(output, lost);
    out_text(output, " lost");
    if (open) {
        out_text(output, "; ");
        out_grouped(output, open);
        out_text(output, " not closed, where more may be");
    }
    out_char(output, '\n');
}

static void json_group_member(struct json *json, const struct report_member *member)
{
    char text[INFO_TIME_SIZE];
    struct report_info data = info_of(member);
    const struct ttd_trace *trace = &member->trace;
    info_start_time(&data, text);
    json_begin_object(json, NULL);
    json_text(json, "path", member->path);
    json_hex(json, "trace_id", trace->trace_id);
    json_hex_if(json, "parent_trace_id", trace->parent_trace_id, trace->parent_trace_id);
    bool is_known = info_has_origin(trace);
    json_count(json, "process_id", is_known ? trace->process_id : TTD_UNKNOWN);
    json_count(json, "parent_process_id", is_known ? trace->parent_process_id : TTD_UNKNOWN);
    json_text(json, "start_time", is_known ? text : NULL);
    json_name(json, "command", member->command);
    json_unsigned(json, "events", member->events);
    json_count(json, "lost_events", member->is_closed ? member->end.lost_events : TTD_UNKNOWN);
    json_unsigned(json, "file_bytes", member->file_bytes);
    json_bool(json, "closed", member->is_closed);
    json_text(json, "end_reason", member->is_closed ? info_end_reason(&data) : NULL);
    json_count(json, "end_code", info_has_end_code(&data) ? member->end.code : TTD_UNKNOWN);
    json_end_object(json);
}

void json_recording(struct report *report, const struct report_group *data)
{
    struct json json;
    json_init(&json, report->output, true);
    json_begin_object(&json, NULL);
    json_bytes(&json, "group", data->id->bytes, sizeof data->id->bytes);
    json_begin_array(&json, "traces");
    for (size_t i = 0; i < data->count; i++)
        json_group_member(&json, &data->members[i]);
    json_end_array(&json);
    json_end_object(&json);
}

void csv_recording(struct report *report, const struct report_group *data)
{
    struct csv csv;
    csv_init(&csv, report->output);
    csv_header(&csv, "path,trace_id,parent_trace_id,process_id,parent_process_id,command,events,"
                     "lost_events,file_bytes,closed,end_reason,end_code");
    for (size_t i = 0; i < data->count; i++) {
        const struct report_member *member = &data->members[i];
        struct report_info info = info_of(member);
        csv_text(&csv, member->path);
        csv_hex(&csv, member->trace.trace_id);
        csv_hex_if(&csv, member->trace.parent_trace_id, member->trace.parent_trace_id);
        bool is_known = info_has_origin(&member->trace);
        csv_count(&csv, is_known ? member->trace.process_id : TTD_UNKNOWN);
        csv_count(&csv, is_known ? member->trace.parent_process_id : TTD_UNKNOWN);
        csv_string(&csv, member->command);
        csv_unsigned(&csv, member->events);
        csv_count(&csv, member->is_closed ? member->end.lost_events : TTD_UNKNOWN);
        csv_unsigned(&csv, member->file_bytes);
        csv_bool(&csv, member->is_closed);
        csv_text(&csv, member->is_closed ? info_end_reason(&info) : "");
        csv_count(&csv, info_has_end_code(&info) ? member->end.code : TTD_UNKNOWN);
        csv_end_row(&csv);
    }
}
